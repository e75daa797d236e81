// Values stored as floats. The loops have no branches, so that compilers use vectors.
#include <bit>
#include <cmath>
#include <cstring>

#include "base/dtype.h"
#include "formats/gguf/blocks/block_kinds.h"

namespace snug::formats {
namespace {

template <typename T>
T stored_at(const uint8_t* bytes, int64_t index) {
  T value;
  std::memcpy(&value, bytes + index * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}

void store_bits(uint16_t bits, uint8_t* bytes, int64_t index) {
  std::memcpy(bytes + 2 * index, &bits, sizeof bits);
}

// What base::to_float16 gives for a number, computed in all three ranges to choose without a
// branch.
uint16_t half_bits(float value) {
  const auto bits = std::bit_cast<int32_t>(value);
  const int32_t magnitude = bits & 0x7fffffff;
  // Adding 0.5 aligns the mantissa to multiples of 2^-24, the unit of subnormal halves.
  const float aligned = std::fabs(value) + 0.5F;
  const int32_t subnormal = std::bit_cast<int32_t>(aligned) - 0x3f000000;
  const int32_t normal = (magnitude + 0xfff + ((magnitude >> 13) & 1) - 0x38000000) >> 13;
  // Chosen by masks: compilers make branches of conditions.
  const int32_t is_subnormal = (magnitude - 0x38800000) >> 31;
  const int32_t is_finite = (magnitude - 0x477ff000) >> 31;
  const int32_t finite = (subnormal & is_subnormal) | (normal & ~is_subnormal);
  const int32_t half = (finite & is_finite) | (0x7c00 & ~is_finite);
  return static_cast<uint16_t>((bits >> 16 & 0x8000) | half);
}

}  // namespace

void quantise_f32(const float* values, int64_t blocks, uint8_t* bytes) {
  std::memcpy(bytes, values, sizeof(float) * static_cast<size_t>(blocks));
}

void dequantise_f32(const uint8_t* bytes, int64_t blocks, float* values) {
  std::memcpy(values, bytes, sizeof(float) * static_cast<size_t>(blocks));
}

void quantise_f16(const float* values, int64_t blocks, uint8_t* bytes) {
  for (int64_t i = 0; i < blocks; ++i) store_bits(half_bits(values[i]), bytes, i);
}

void dequantise_f16(const uint8_t* bytes, int64_t blocks, float* values) {
  for (int64_t i = 0; i < blocks; ++i)
    values[i] = base::to_float(stored_at<base::Float16>(bytes, i));
}

void quantise_bf16(const float* values, int64_t blocks, uint8_t* bytes) {
  for (int64_t i = 0; i < blocks; ++i) store_bits(base::to_bfloat16(values[i]).bits, bytes, i);
}

void dequantise_bf16(const uint8_t* bytes, int64_t blocks, float* values) {
  for (int64_t i = 0; i < blocks; ++i)
    values[i] = base::to_float(stored_at<base::BFloat16>(bytes, i));
}

}  // namespace snug::formats
