// Which characters one place of a regular expression may take, as PCRE2 writes it: within brackets
// where that is possible, which is what its engines are quickest at, else as an expression that
// takes one character. PCRE2 (before 10.45) has no classes within classes, so that what Oniguruma
// nests and intersects is put together here.
// Pure functions, any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace snug::text {

struct CharacterSet {
  std::string members;     // what stands for it within brackets; empty: nothing can
  std::string others;      // what stands within brackets for all characters outside it, likewise
  std::string expression;  // where both are empty

  // Whether all that is in it is written as members.
  bool is_plain() const { return !members.empty(); }
  // Takes one character of the set.
  std::string pattern() const;
};

CharacterSet set_of(std::string_view members);
CharacterSet all_but(std::string_view members);

CharacterSet complement(CharacterSet set);
CharacterSet unite(const std::vector<CharacterSet>& sets);      // no sets: no characters
CharacterSet intersect(const std::vector<CharacterSet>& sets);  // at least one

// A character as it stands for itself, in brackets and outside.
std::string literal_character(char32_t value);

}  // namespace snug::text
