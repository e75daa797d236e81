#include "text/grammar/pattern_escape.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

#include "text/grammar/pattern_tree.h"
#include "text/unicode/utf8.h"

namespace snug::text {
namespace {

bool is_ascii_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_octal(char c) { return c >= '0' && c <= '7'; }

PatternEscape one_character(char32_t value) {
  return {.set = {value, value}, .is_character = true, .character = value};
}

// \x41, \u0041 and \U00000041.
PatternEscape read_code(PatternText& text, size_t digits) {
  char32_t value = 0;
  for (size_t i = 0; i < digits; ++i) {
    const char c = text.peek(2 + i);
    const std::string_view hex = "0123456789abcdef";
    const char lower = c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c;
    const size_t digit = c == '\0' ? std::string_view::npos : hex.find(lower);
    if (digit == std::string_view::npos) text.refuse("a malformed character code");
    value = value * 16 + static_cast<char32_t>(digit);
  }
  if (value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF))
    text.refuse("a code that is no character");
  text.at += 2 + digits;
  return one_character(value);
}

// \p{Lu}, \P{L} and \pN.
PatternEscape read_category(PatternText& text) {
  std::string_view name = text.in.substr(std::min(text.at + 2, text.in.size()), 1);
  size_t size = 3;
  if (name == "{") {
    const size_t end = text.in.find('}', text.at);
    if (end == std::string_view::npos) text.refuse("a category that does not end");
    name = text.in.substr(text.at + 3, end - text.at - 3);
    size = end + 1 - text.at;
  }
  const CodePointSet set = characters_of_category(name);
  if (set.empty())
    text.refuse(fmt::format("the category '{}', which is none of Unicode's general ones,", name));
  const bool is_negated = text.peek(1) == 'P';
  text.at += size;
  return {.set = is_negated ? set.complement() : set};
}

std::optional<CodePointSet> named_set(const PatternText& text, char lower) {
  if (lower == 'd') return digit_characters(text.is_ascii);
  if (lower == 'w') return word_characters(text.is_ascii);
  if (lower == 's') return space_characters(text.is_ascii);
  return std::nullopt;
}

// \0 and three octal digits are a character; other digits refer back.
PatternEscape read_octal(PatternText& text, bool in_class) {
  size_t digits = 0;
  char32_t value = 0;
  while (digits < 3 && is_octal(text.peek(1 + digits)))
    value = value * 8 + static_cast<char32_t>(text.peek(1 + digits++) - '0');
  const bool is_character = text.peek(1) == '0' || digits == 3 || (in_class && digits > 0);
  if (!is_character) text.refuse("a back reference");
  if (value > 0xFF) text.refuse("a malformed character code");
  text.at += 1 + digits;
  return one_character(value);
}

// A character of a class, or a set within it.
PatternEscape read_member(PatternText& text) {
  if (text.is_done()) text.refuse("a class that does not end");
  if (text.peek(0) == '\\') return read_pattern_escape(text, true);
  return one_character(read_pattern_character(text));
}

}  // namespace

void PatternText::refuse(std::string_view what) const { refuse_pattern(in, what, at); }

char32_t read_pattern_character(PatternText& text) {
  const CodePoint point = code_point_at(text.in, text.at);
  text.at += point.size;
  return point.value;
}

PatternEscape read_pattern_escape(PatternText& text, bool in_class) {
  if (text.at + 1 >= text.in.size()) text.refuse("an escape of nothing");
  const char letter = text.peek(1);
  const char lower =
      letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  if (auto set = named_set(text, lower)) {
    text.at += 2;
    return {.set = letter == lower ? std::move(*set) : set->complement()};
  }
  if (lower == 'p') return read_category(text);
  if (letter == 'x') return read_code(text, 2);
  if (letter == 'u') return read_code(text, 4);
  if (letter == 'U') return read_code(text, 8);
  if (letter >= '0' && letter <= '9') return read_octal(text, in_class);
  constexpr std::string_view kLetters = "rntfav";
  constexpr std::string_view kControls = "\r\n\t\f\a\v";
  const size_t control = in_class && letter == 'b' ? kLetters.size() : kLetters.find(letter);
  if (control != std::string_view::npos) {
    text.at += 2;
    return one_character(control < kControls.size() ? static_cast<char32_t>(kControls[control])
                                                    : '\b');
  }
  if (letter == 'b' || letter == 'B') text.refuse("a border of words");
  if (is_ascii_letter(letter)) text.refuse(fmt::format("the escape '\\{}'", letter));
  ++text.at;
  return one_character(read_pattern_character(text));
}

CodePointSet read_pattern_class(PatternText& text) {
  const PatternText opening = text;
  ++text.at;
  const bool is_negated = text.peek(0) == '^';
  if (is_negated) ++text.at;
  CodePointSet set;
  for (bool is_first = true; text.peek(0) != ']' || is_first; is_first = false) {
    if (text.is_done()) opening.refuse("a '[' that is not closed");
    const size_t at = text.at;
    const PatternEscape member = read_member(text);
    if (text.peek(0) != '-' || text.peek(1) == ']' || text.at + 1 >= text.in.size()) {
      set.add(member.set);
      continue;
    }
    ++text.at;
    const PatternEscape last = read_member(text);
    if (!member.is_character || !last.is_character || last.character < member.character)
      refuse_pattern(text.in, "a range that is none", at);
    set.add(member.character, last.character);
  }
  ++text.at;
  if (text.ignores_case) set = with_other_cases(set);
  return is_negated ? set.complement() : set;
}

}  // namespace snug::text
