// Interprets the escapes of a string literal as in Python.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace snug::text::jinja {

// `written`: the text between the quotes. Nothing for an invalid escape, one that gives a character
// by its name (\N{...}), or one that is not a character on its own (a surrogate).
std::optional<std::string> unescaped(std::string_view written);

}  // namespace snug::text::jinja
