// JSON's white space, which may separate records, and of which an answer must not consist entirely.
#pragma once

#include <string_view>

namespace snug::text {

// Whether a byte is white space; the end-of-file value is not.
constexpr bool is_space(int c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

constexpr bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\n\r") == std::string_view::npos;
}

}  // namespace snug::text
