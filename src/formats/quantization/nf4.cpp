// Block by block: convert to fp32, find the largest magnitude, scale, count the thresholds that
// each element exceeds, pack. nf4_avx2.cpp does the same for whole blocks with vectors.
#include "formats/quantization/nf4.h"

#include "base/error.h"
#include "formats/quantization/nf4_blocks.h"

#include <algorithm>
#include <bit>
#include <cstddef>

namespace snug::formats {
namespace {

using base::BFloat16;
using base::DType;
using base::Float16;

float widened(float value) { return value; }
float widened(BFloat16 value) { return base::to_float(value); }
float widened(Float16 value) { return base::to_float(value); }

// Compared as integers, magnitudes have the order of their values, with infinity and NaN on top, so
// that neither is lost.
float largest_magnitude(const float* values, int64_t count) {
  int32_t largest = 0;
  for (int64_t i = 0; i < count; ++i)
    largest = std::max(largest, std::bit_cast<int32_t>(values[i]) & 0x7fffffff);
  return std::bit_cast<float>(largest);
}

// The number of thresholds below the scaled element: 0 to 15. NaN counts as above all of them.
uint8_t code_of(float scaled) {
  int code = 0;
  for (const float threshold : kNf4Thresholds) code += scaled <= threshold ? 0 : 1;
  return static_cast<uint8_t>(code);
}

// With an odd count, the unused half of the last byte gets the code of zero.
void pack(const float* scaled, int64_t count, uint8_t* codes) {
  for (int64_t i = 0; i < count; i += 2) {
    const float next = i + 1 < count ? scaled[i + 1] : 0.0F;
    codes[i / 2] = static_cast<uint8_t>(code_of(scaled[i]) << 4 | code_of(next));
  }
}

template <typename T>
void quantize_whole_blocks(const void* source, int64_t blocks, uint8_t* codes, float* absmax) {
  const auto* from = static_cast<const T*>(source);
  for (int64_t block = 0; block < blocks; ++block) {
    float values[kNf4BlockSize];
    for (int64_t i = 0; i < kNf4BlockSize; ++i)
      values[i] = widened(from[block * kNf4BlockSize + i]);
    absmax[block] = largest_magnitude(values, kNf4BlockSize);
    const float scale = 1.0F / (absmax[block] < kNf4LeastScale ? kNf4LeastScale : absmax[block]);
    for (float& value : values) value *= scale;
    pack(values, kNf4BlockSize, codes + block * kNf4BlockSize / 2);
  }
}

// In a partial block, bitsandbytes divides by absmax instead of multiplying by its reciprocal, and
// stores the absmax after raising it to the minimum.
template <typename T>
void quantize_partial_block(const void* source, int64_t elements, uint8_t* codes, float* absmax) {
  float values[kNf4BlockSize];
  for (int64_t i = 0; i < elements; ++i) values[i] = widened(static_cast<const T*>(source)[i]);
  const float largest = largest_magnitude(values, elements);
  *absmax = largest < kNf4LeastScale ? kNf4LeastScale : largest;
  for (int64_t i = 0; i < elements; ++i) values[i] /= *absmax;
  pack(values, elements, codes);
}

}  // namespace

void quantize_blocks_portably(DType from, const void* source, int64_t blocks, uint8_t* codes,
                              float* absmax) {
  switch (from) {
    case DType::f32:
      return quantize_whole_blocks<float>(source, blocks, codes, absmax);
    case DType::bf16:
      return quantize_whole_blocks<BFloat16>(source, blocks, codes, absmax);
    case DType::f16:
      return quantize_whole_blocks<Float16>(source, blocks, codes, absmax);
    default:
      SNUG_CHECK(false, "no NF4 from {}", base::name_of(from));
  }
}

void quantize_nf4(DType from, const void* source, int64_t elements, uint8_t* codes, float* absmax) {
  static const bool has_avx2 = runs_avx2();
  const int64_t blocks = elements / kNf4BlockSize;
  (has_avx2 ? quantize_blocks_avx2 : quantize_blocks_portably)(from, source, blocks, codes, absmax);
  const int64_t rest = elements % kNf4BlockSize;
  if (rest == 0) return;
  const int64_t done = blocks * kNf4BlockSize;
  const void* last = static_cast<const std::byte*>(source) + done * base::size_of(from);
  if (from == DType::f32)
    quantize_partial_block<float>(last, rest, codes + done / 2, absmax + blocks);
  else if (from == DType::bf16)
    quantize_partial_block<BFloat16>(last, rest, codes + done / 2, absmax + blocks);
  else
    quantize_partial_block<Float16>(last, rest, codes + done / 2, absmax + blocks);
}

}  // namespace snug::formats
