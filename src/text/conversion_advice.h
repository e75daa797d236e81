// What to do with data in a format that Snug does not read.
#pragma once

#include <string>

namespace snug::text {

// By the name's ending: a command that makes JSON lines of a table or unpacks an archive; that the
// file be renamed, where the ending says nothing.
std::string conversion_advice(const std::string& path);

}  // namespace snug::text
