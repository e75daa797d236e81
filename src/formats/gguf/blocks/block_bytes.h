// How the bytes of a block hold halves and narrow codes. Pure.
#pragma once

#include <cstdint>
#include <cstring>

#include "base/dtype.h"

namespace snug::formats {

// Halves are little-endian and need no alignment.
inline void put_half(float value, uint8_t* bytes) {
  const uint16_t bits = base::to_float16(value).bits;
  std::memcpy(bytes, &bits, sizeof bits);
}
inline float half_at(const uint8_t* bytes) {
  base::Float16 half;
  std::memcpy(&half.bits, bytes, sizeof half.bits);
  return base::to_float(half);
}

// Codes are packed in groups of kStride bytes, each with 8 / kBits fields: field f of byte i of a
// group, counted from the lowest bits, holds code f * kStride + i of the group. With 4 bits and a
// stride of 16, for example, the low halves of 16 bytes hold codes 0 to 15 and the high halves
// codes 16 to 31. Formats with more bits than a field keep the low and the high bits apart: a field
// holds the kBits bits above the lowest kShift.
template <int kBits, int kStride, int kShift = 0>
inline void pack_codes(const uint8_t* codes, int count, uint8_t* bytes) {
  constexpr int kFields = 8 / kBits;
  constexpr unsigned kMask = (1U << kBits) - 1;
  for (int group = 0; group < count / (kFields * kStride); ++group)
    for (int i = 0; i < kStride; ++i) {
      unsigned byte = 0;
      for (int field = 0; field < kFields; ++field)
        byte |= (codes[(group * kFields + field) * kStride + i] >> kShift & kMask)
                << (field * kBits);
      bytes[group * kStride + i] = static_cast<uint8_t>(byte);
    }
}

// The inverse: sets the bits that the fields hold in codes where they are 0.
template <int kBits, int kStride, int kShift = 0>
inline void unpack_codes(const uint8_t* bytes, int count, uint8_t* codes) {
  constexpr int kFields = 8 / kBits;
  constexpr unsigned kMask = (1U << kBits) - 1;
  for (int group = 0; group < count / (kFields * kStride); ++group)
    for (int field = 0; field < kFields; ++field)
      for (int i = 0; i < kStride; ++i) {
        const unsigned bits = bytes[group * kStride + i] >> (field * kBits) & kMask;
        uint8_t& code = codes[(group * kFields + field) * kStride + i];
        code = static_cast<uint8_t>(code | bits << kShift);
      }
}

}  // namespace snug::formats
