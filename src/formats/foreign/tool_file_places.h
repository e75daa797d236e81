// Finds where the keys of another tool's file are written in it.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/error.h"

namespace snug::formats {

// The line and column of each key, and of each element of a list, by its path as in settings_in.
// JSON is read as YAML, of which it is a subset. Empty for a text that is not YAML.
std::map<std::string, base::Location> tool_file_places(std::string_view text,
                                                       const std::string& file);

}  // namespace snug::formats
