// The byte-level alphabet of GPT-2: every byte has a printable character, so that a vocabulary of
// words over all bytes can be written as text. Printable Latin-1 bytes stand for themselves, the
// other 68, in order, for U+0100 and up. Pure functions, any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace snug::text {

constexpr char32_t kByteAlphabetEnd = 0x144;  // one past its largest character

// Appends the character of each byte, in UTF-8.
void append_byte_characters(std::string& out, std::string_view bytes);

// The byte a character stands for, if it is in the alphabet.
std::optional<char> byte_of_character(char32_t character);

}  // namespace snug::text
