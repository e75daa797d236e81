// A regular expression while it is read, and what an escape in it stands for. The same escapes
// stand within brackets and outside of them.
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
  // Throws std::invalid_argument, which names the place.
  [[noreturn]] void refuse(std::string_view what) const;
};

// What an escape stands for: a character, or one of a set.
struct RegexEscape {
  std::optional<char32_t> character;
  CharacterSet set;
};

// Takes the escape that begins at the reader's place. Nothing, and nothing is taken, where it is
// an escape of a letter or digit that has no such meaning.
std::optional<RegexEscape> read_escape(RegexReader& reader, bool within_brackets);

// The character at the reader's place, which stands for itself; takes it.
char32_t read_character(RegexReader& reader);

}  // namespace snug::text
