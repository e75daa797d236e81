// Element types of tensors, in files and in memory.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

#include "base/words.h"

namespace snug::base {

enum class DType : uint8_t { f64, f32, bf16, f16, i64, i32, u8 };

// The names in recipes, program texts and messages.
constexpr auto words_of(DType /*type*/) {
  return words<DType>({{DType::f64, "f64"},
                       {DType::f32, "f32"},
                       {DType::bf16, "bf16"},
                       {DType::f16, "f16"},
                       {DType::i64, "i64"},
                       {DType::i32, "i32"},
                       {DType::u8, "u8"}});
}
constexpr std::string_view name_of(DType type) { return word_of(type); }

constexpr int64_t size_of(DType type) {
  switch (type) {
    case DType::f64:
    case DType::i64:
      return 8;
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::bf16:
    case DType::f16:
      return 2;
    case DType::u8:
      return 1;
  }
  return 0;
}

constexpr bool is_float(DType type) { return type <= DType::f16; }

// bfloat16 as stored: the upper half of an fp32.
struct BFloat16 {
  uint16_t bits = 0;
};

constexpr float to_float(BFloat16 value) {
  return std::bit_cast<float>(static_cast<uint32_t>(value.bits) << 16);
}

// Rounds to nearest, ties to even; NaN stays NaN.
constexpr BFloat16 to_bfloat16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return {static_cast<uint16_t>((bits >> 16) | 0x40U)};
  return {static_cast<uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16)};
}

// IEEE half precision as stored.
struct Float16 {
  uint16_t bits = 0;
};

// Has no branches, so that loops over it vectorise.
constexpr float to_float(Float16 value) {
  constexpr uint32_t kExponentShift = 112U << 23;  // difference of the exponents' biases
  constexpr uint32_t kSmallestNormal = 113U << 23;
  const uint32_t sign = static_cast<uint32_t>(value.bits & 0x8000U) << 16;
  const uint32_t magnitude = static_cast<uint32_t>(value.bits & 0x7fffU) << 13;
  // A subnormal is its mantissa above the smallest normal: the subtraction normalises it.
  const auto subnormal = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude + kSmallestNormal) -
                                                 std::bit_cast<float>(kSmallestNormal));
  uint32_t bits = magnitude + kExponentShift;
  bits = magnitude >= (31U << 23) ? magnitude | 0x7f800000U : bits;
  bits = magnitude < (1U << 23) ? subnormal : bits;
  return std::bit_cast<float>(sign | bits);
}
// Rounds to nearest, ties to even; overflow becomes infinity.
Float16 to_float16(float value);

}  // namespace snug::base
