// Reads a regular expression, and interprets the escapes in it, which are the same within brackets
// and outside of them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "text/unicode/character_set.h"

namespace snug::text {

struct RegexReader {
  std::string_view in;
  size_t at = 0;
  bool ignores_case = false;

  bool is_done() const { return at >= in.size(); }
  char peek(size_t ahead) const { return at + ahead < in.size() ? in[at + ahead] : '\0'; }
  // Throws std::invalid_argument with the position.
  [[noreturn]] void refuse(std::string_view what) const;
};

// The meaning of an escape: a character, or any one of a set.
struct RegexEscape {
  std::optional<char32_t> character;
  CharacterSet set;
};

// Reads the escape at the reader's position. Returns nothing, without moving, if it is an escape of
// a letter or digit without such a meaning.
std::optional<RegexEscape> read_escape(RegexReader& reader, bool within_brackets);

// Reads the character at the reader's position, which stands for itself.
char32_t read_character(RegexReader& reader);

}  // namespace snug::text
