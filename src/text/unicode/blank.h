// White space as JSON has it: what may stand between records, and what an answer must not be alone.
#pragma once

#include <string_view>

namespace snug::text {

// Whether a byte is white space; a reader's end is none.
constexpr bool is_space(int c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

constexpr bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\n\r") == std::string_view::npos;
}

}  // namespace snug::text
