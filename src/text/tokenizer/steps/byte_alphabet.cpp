#include "text/tokenizer/steps/byte_alphabet.h"

#include <array>

#include "text/unicode/utf8.h"

namespace snug::text {
namespace {

struct Alphabet {
  std::array<char32_t, 256> character{};
  std::array<int16_t, kByteAlphabetEnd> byte{};  // -1: this character stands for no byte
};

constexpr bool is_printable(uint32_t byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

constexpr Alphabet make_alphabet() {
  Alphabet alphabet;
  for (auto& byte : alphabet.byte) byte = -1;
  char32_t next = 0x100;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const char32_t character = is_printable(byte) ? static_cast<char32_t>(byte) : next++;
    alphabet.character[byte] = character;
    alphabet.byte[character] = static_cast<int16_t>(byte);
  }
  return alphabet;
}

constexpr Alphabet kAlphabet = make_alphabet();
static_assert(kAlphabet.byte[kByteAlphabetEnd - 1] == 0xAD);

}  // namespace

void append_byte_characters(std::string& out, std::string_view bytes) {
  for (const char byte : bytes)
    append_code_point(out, kAlphabet.character[static_cast<unsigned char>(byte)]);
}

std::optional<char> byte_of_character(char32_t character) {
  if (character >= kByteAlphabetEnd || kAlphabet.byte[character] < 0) return std::nullopt;
  return static_cast<char>(kAlphabet.byte[character]);
}

}  // namespace snug::text
