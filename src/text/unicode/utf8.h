// UTF-8 and the few character classes that tokenizer files speak of. Pure functions, any thread.
// Functions that walk text require valid UTF-8 unless they say otherwise; check with
// find_invalid_utf8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace snug::text {

// U+FFFD, which stands for what is no character.
inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";

struct CodePoint {
  char32_t value = 0;
  size_t size = 0;  // bytes in UTF-8, 1 to 4
};

// The character that starts at byte `position`.
CodePoint code_point_at(std::string_view text, size_t position);

void append_code_point(std::string& text, char32_t value);

// Whether a byte of valid UTF-8 goes on with a character that an earlier byte opened.
constexpr bool is_inside_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U;
}

// Bytes of the sequence that `lead` opens: 1 to 4. Requires a lead byte of valid UTF-8.
size_t sequence_length(unsigned char lead);

// Offset of the first byte that is not part of well-formed UTF-8 (Unicode 15, table 3-7);
// std::string_view::npos where there is none.
size_t find_invalid_utf8(std::string_view text);

// Any bytes as valid UTF-8: each maximal ill-formed part becomes one U+FFFD.
std::string repair_utf8(std::string_view bytes);

// Bytes at the end that could still become a character when more bytes follow: 0 to 3.
size_t incomplete_tail(std::string_view bytes);

// The beginning of `text`, of at most so many bytes, in whole characters.
std::string_view first_bytes(std::string_view text, size_t most);

bool is_white_space(char32_t value);  // property White_Space
bool is_numeric(char32_t value);      // categories Nd, Nl, No
bool is_punctuation(char32_t value);  // ASCII punctuation, or a category P of Unicode 8
bool is_word(char32_t value);         // letters, marks, digits, connectors, joiners

}  // namespace snug::text
