// The text that a string in a template means: Python's escapes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace snug::text::jinja {

// `written` is what stands between the quotes. None for an escape that is broken, that names a
// character by its name (\N{...}), or that is no character by itself.
std::optional<std::string> unescaped(std::string_view written);

}  // namespace snug::text::jinja
