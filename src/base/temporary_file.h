// The temporary path where a file's new contents are written before they replace it: PATH.snug-tmp.
#pragma once

#include <filesystem>

namespace snug::base {

// The temporary path for `path`. A file that a killed process left there is removed. Throws
// UserError where something else is in the way: a symbolic link, a file with another hard link, a
// folder or a device, since writing there would change data that is not Snug's.
std::filesystem::path temporary_for(const std::filesystem::path& path);

}  // namespace snug::base
