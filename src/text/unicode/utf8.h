// UTF-8, and the character classes that tokenizer files use. Pure functions, any thread. Functions
// that go through a text require valid UTF-8 unless they say otherwise; check with
// find_invalid_utf8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace snug::text {

// U+FFFD, which replaces bytes that are not a character.
inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";

struct CodePoint {
  char32_t value = 0;
  size_t size = 0;  // in UTF-8 bytes, 1 to 4
};

// The character that starts at byte `position`.
CodePoint code_point_at(std::string_view text, size_t position);

void append_code_point(std::string& text, char32_t value);

// Whether a byte of valid UTF-8 continues a character that an earlier byte began.
constexpr bool is_inside_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U;
}

// The number of bytes of the sequence that `lead` begins: 1 to 4. Requires a lead byte of valid
// UTF-8.
size_t sequence_length(unsigned char lead);

// The offset of the first byte that is not part of well-formed UTF-8 (Unicode 15, table 3-7);
// std::string_view::npos if there is none.
size_t find_invalid_utf8(std::string_view text);

// Converts any bytes to valid UTF-8: each maximal ill-formed part becomes one U+FFFD.
std::string repair_utf8(std::string_view bytes);

// The number of bytes at the end that could still become a character with the bytes that follow: 0
// to 3.
size_t incomplete_tail(std::string_view bytes);

// The beginning of `text` with at most `most` bytes, in whole characters.
std::string_view first_bytes(std::string_view text, size_t most);

bool is_white_space(char32_t value);  // property White_Space
bool is_numeric(char32_t value);      // categories Nd, Nl, No
bool is_punctuation(char32_t value);  // ASCII punctuation, or a P category of Unicode 8
bool is_word(char32_t value);         // letters, marks, digits, connectors, joiners

}  // namespace snug::text
