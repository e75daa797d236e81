// K kinds: blocks of 256 values in sub-blocks of 16 or 32, each with a narrow scale of its own that
// is to be multiplied by a half of the block. In the order of their bytes:
//
//   q2_k   16 scales and least values (4 bits each), codes of 2 bits, step (half), least (half)
//   q3_k   third bits of codes + 4, lower 2 bits, 16 scales + 32 of 6 bits (12 bytes), step (half)
//   q4_k   step (half), least (half), 8 scales and least values of 6 bits (12 bytes), codes of 4
//   bits q5_k   step (half), least (half), 8 scales and least values of 6 bits (12 bytes), fifth
//   bits of
//          codes, lower 4 bits
//   q6_k   lower 4 bits of codes + 32, upper 2 bits, 16 scales of 8 bits, step (half)
//
// A value is step * scale * code in q3_k and q6_k, and step * scale * code - least * (the
// sub-block's least value) in the others.
#pragma once

#include <array>
#include <cstdint>

#include "formats/gguf/blocks/block_bytes.h"

namespace snug::formats {

inline constexpr int kKBlock = 256;
using KCodes = std::array<uint8_t, kKBlock>;

// The 6-bit scales and least values of q4_k and q5_k.
struct KScales {
  static constexpr int kBytes = 12;
  static constexpr int kCount = 8;
  std::array<uint8_t, kCount> scales{};
  std::array<uint8_t, kCount> leasts{};
};

// The first four of each have a byte of their own, whose upper bits hold the upper two bits of the
// other four; the lower bits of those share the last four bytes.
inline void put_k_scales(const KScales& from, uint8_t* bytes) {
  for (size_t i = 0; i < 4; ++i) {
    bytes[i] = static_cast<uint8_t>(from.scales[i] | from.scales[i + 4] >> 4 << 6);
    bytes[i + 4] = static_cast<uint8_t>(from.leasts[i] | from.leasts[i + 4] >> 4 << 6);
    bytes[i + 8] = static_cast<uint8_t>((from.scales[i + 4] & 15) | from.leasts[i + 4] << 4);
  }
}

inline KScales k_scales_at(const uint8_t* bytes) {
  KScales result;
  for (size_t i = 0; i < 4; ++i) {
    result.scales[i] = bytes[i] & 63;
    result.leasts[i] = bytes[i + 4] & 63;
    result.scales[i + 4] = static_cast<uint8_t>((bytes[i + 8] & 15) | bytes[i] >> 6 << 4);
    result.leasts[i + 4] = static_cast<uint8_t>(bytes[i + 8] >> 4 | bytes[i + 4] >> 6 << 4);
  }
  return result;
}

// The 6-bit scales of q3_k.
struct Q3KScales {
  static constexpr int kBytes = 12;
  static constexpr int kCount = 16;
  static constexpr int kZero = 32;
  std::array<uint8_t, kCount> scales{};
};

inline void put_q3_k_scales(const Q3KScales& from, uint8_t* bytes) {
  pack_codes<4, 8>(from.scales.data(), Q3KScales::kCount, bytes);
  pack_codes<2, 4, 4>(from.scales.data(), Q3KScales::kCount, bytes + 8);
}

inline Q3KScales q3_k_scales_at(const uint8_t* bytes) {
  Q3KScales result;
  unpack_codes<4, 8>(bytes, Q3KScales::kCount, result.scales.data());
  unpack_codes<2, 4, 4>(bytes + 8, Q3KScales::kCount, result.scales.data());
  return result;
}

}  // namespace snug::formats
