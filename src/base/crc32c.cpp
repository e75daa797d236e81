#include "base/crc32c.h"

#include <array>

namespace snug::base {
namespace {

// The polynomial 0x1EDC6F41 with its bits reversed.
constexpr uint32_t kPolynomial = 0x82F63B78;

constexpr std::array<uint32_t, 256> make_crc_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? kPolynomial : 0);
    table[byte] = value;
  }
  return table;
}

constexpr std::array<uint32_t, 256> kCrcTable = make_crc_table();

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  uint32_t value = 0xFFFFFFFF;
  for (const char byte : bytes)
    value = (value >> 8) ^ kCrcTable[(value ^ static_cast<uint8_t>(byte)) & 0xFF];
  return ~value;
}

}  // namespace snug::base
