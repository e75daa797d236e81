// The temporary path where a file's new contents are written before they replace it: PATH.snug-tmp,
// and of a folder's: NAME.snug-tmp-NUMBER/new (formats/folder/staging_folder.h).
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace snug::base {

// The temporary path for `path`. A file that a killed process left there is removed. Throws
// UserError where something else is in the way: a symbolic link, a file with another hard link, a
// folder or a device, since writing there would change data that is not Snug's.
std::filesystem::path temporary_for(const std::filesystem::path& path);

inline constexpr std::string_view kStagingInfix = ".snug-tmp-";  // a number follows
inline constexpr std::string_view kStagedFolder = "new";

// What is written at `path` as a user knows it: "out/a.json" for out/a.json.snug-tmp, "a.json of
// out" for out.snug-tmp-7/new/a.json.snug-tmp and for what is staged again within it, "out" for
// out.snug-tmp-7 and out.snug-tmp-7/new. Any other path is named as it is.
std::string name_of_written(const std::filesystem::path& path);

}  // namespace snug::base
