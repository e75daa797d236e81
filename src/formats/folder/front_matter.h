// The YAML between the first two lines of --- with which the README.md of a model or a data set of
// the hub begins.
#pragma once

#include <string>
#include <string_view>

namespace snug::formats {

// The YAML after as many line breaks as stand before it, so that places in it are the file's; empty
// where the text does not begin with such lines.
std::string front_matter(std::string_view text);

}  // namespace snug::formats
