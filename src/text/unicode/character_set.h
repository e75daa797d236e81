// The characters that one place of a regular expression may match, in PCRE2's syntax: as a class in
// brackets where possible, which is fastest, otherwise as an expression that matches one character.
// PCRE2 (before 10.45) has no nested classes, so Oniguruma's nested and intersected classes are
// combined here. Pure functions, any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace snug::text {

struct CharacterSet {
  // The set's members in the syntax within brackets; empty: not expressible.
  std::string members;
  // The same for all characters outside the set.
  std::string others;
  std::string expression;  // used if both are empty

  // Whether the set can be written as members of a class.
  bool is_plain() const { return !members.empty(); }
  // A pattern that matches one character of the set.
  std::string pattern() const;
};

CharacterSet set_of(std::string_view members);
CharacterSet all_but(std::string_view members);

CharacterSet complement(CharacterSet set);
CharacterSet unite(const std::vector<CharacterSet>& sets);      // no sets: no characters
CharacterSet intersect(const std::vector<CharacterSet>& sets);  // at least one

// A literal character, escaped for use in brackets and outside.
std::string literal_character(char32_t value);

}  // namespace snug::text
