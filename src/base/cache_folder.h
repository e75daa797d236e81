// Where Snug keeps what may be lost: $XDG_CACHE_HOME/snug, else ~/.cache/snug, else .snug.
#pragma once

#include <filesystem>

namespace snug::base {

// The folder's name; it need not exist.
std::filesystem::path cache_folder();

}  // namespace snug::base
