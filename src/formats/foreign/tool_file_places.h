// Where the keys of another tool's file stand in it.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/error.h"

namespace snug::formats {

// The line and column of each key, and of each element of a list, by its path as settings_in has
// it. JSON is read as the YAML that it is. Nothing of a text that is none.
std::map<std::string, base::Location> tool_file_places(std::string_view text,
                                                       const std::string& file);

}  // namespace snug::formats
