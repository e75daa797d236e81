// The byte-level alphabet of GPT-2, in which every byte has a printable character, so that a
// vocabulary over arbitrary bytes can be written as text. Printable Latin-1 bytes stand for
// themselves; the other 68, in order, are U+0100 and up. Pure functions, any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace snug::text {

constexpr char32_t kByteAlphabetEnd = 0x144;  // one past the largest character

// Appends each byte's character in UTF-8.
void append_byte_characters(std::string& out, std::string_view bytes);

// The byte for which a character stands, if it is in the alphabet.
std::optional<char> byte_of_character(char32_t character);

}  // namespace snug::text
