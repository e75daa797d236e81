// The characters of a regular expression in Python's syntax: escapes, and classes in brackets.
#pragma once

#include <cstddef>
#include <string_view>

#include "text/grammar/code_point_set.h"

namespace snug::text {

// An expression (valid UTF-8) as it is read.
struct PatternText {
  std::string_view in;
  size_t at = 0;
  bool ignores_case = false;
  bool is_ascii = false;  // \w, \d and \s are of ASCII alone

  bool is_done() const { return at >= in.size(); }
  char peek(size_t ahead) const { return at + ahead < in.size() ? in[at + ahead] : '\0'; }
  // Throws std::invalid_argument with the place.
  [[noreturn]] void refuse(std::string_view what) const;
};

// What an escape means: a set, of one character where `is_character`.
struct PatternEscape {
  CodePointSet set;
  bool is_character = false;
  char32_t character = 0;
};

// These read from the text's place, where an escape, a class and a character begin. They throw
// std::invalid_argument.
PatternEscape read_pattern_escape(PatternText& text, bool in_class = false);
CodePointSet read_pattern_class(PatternText& text);
char32_t read_pattern_character(PatternText& text);

}  // namespace snug::text
