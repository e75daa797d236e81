// Where the new contents of a file are written before they take its place: PATH.snug-tmp.
#pragma once

#include <filesystem>

namespace snug::base {

// The temporary path of `path`, with nothing there: what a process that was killed left is removed.
// Throws UserError where something else is in the way: a symbolic link, a file with another name
// (hard link), a folder, a device. Writing there would change what is not ours.
std::filesystem::path temporary_for(const std::filesystem::path& path);

}  // namespace snug::base
