// The formats of JSON schemas that a regular expression can hold a string to.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace snug::text {

// A regular expression whose matches are of the format, in the form that is usual; nothing for a
// format that is not known. Texts have no leap seconds, and hosts no labels that end in a hyphen.
std::optional<std::string> pattern_of_format(std::string_view format);

// Their names, for messages.
std::string known_formats();

}  // namespace snug::text
