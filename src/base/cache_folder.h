// Where Snug keeps files that can be made again: $XDG_CACHE_HOME/snug, else ~/.cache/snug, else
// .snug.
#pragma once

#include <filesystem>

namespace snug::base {

// The path of the folder; it need not exist.
std::filesystem::path cache_folder();

}  // namespace snug::base
