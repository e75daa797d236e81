// NF4, bitsandbytes' 4-bit format of a weight: blocks of 64 consecutive elements of the flattened
// row-major weight, each with its largest magnitude (absmax) in fp32 and a 4-bit code per element.
// The bytes are identical to those of bitsandbytes 0.50 on a CPU; docs/nf4.md says where its CUDA
// kernels differ. The operation dequantize_nf4 (program/kinds/product/nf4.h) decodes them.
// Threading: pure functions without allocation; distinct ranges may run in parallel.
#pragma once

#include "base/dtype.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace snug::formats {

inline constexpr int64_t kNf4BlockSize = 64;
// The number of blocks whose absmax share one fp32 scale if they are stored in 8 bits (double
// quantisation).
inline constexpr int64_t kNestedBlockSize = 256;

// The value of each code, to be multiplied by the block's absmax.
inline constexpr std::array<float, 16> kNf4Codes{-1.0F,
                                                 -0.6961928009986877F,
                                                 -0.5250730514526367F,
                                                 -0.39491748809814453F,
                                                 -0.28444138169288635F,
                                                 -0.18477343022823334F,
                                                 -0.09105003625154495F,
                                                 0.0F,
                                                 0.07958029955625534F,
                                                 0.16093020141124725F,
                                                 0.24611230194568634F,
                                                 0.33791524171829224F,
                                                 0.44070982933044434F,
                                                 0.5626170039176941F,
                                                 0.7229568362236023F,
                                                 1.0F};

// The midpoints between adjacent codes in fp32. A scaled element above a threshold gets the upper
// code, one equal to it the lower.
inline constexpr std::array<float, 15> kNf4Thresholds = [] {
  std::array<float, 15> thresholds{};
  for (size_t i = 0; i < thresholds.size(); ++i)
    thresholds[i] = (kNf4Codes[i] + kNf4Codes[i + 1]) / 2.0F;
  return thresholds;
}();

// The number of blocks of a weight; the last one may be partial.
constexpr int64_t nf4_blocks(int64_t elements) {
  return (elements + kNf4BlockSize - 1) / kNf4BlockSize;
}
// The number of fp32 scales for this number of absmax in 8 bits.
constexpr int64_t nested_blocks(int64_t blocks) {
  return (blocks + kNestedBlockSize - 1) / kNestedBlockSize;
}
// The bytes of a weight's codes: two per byte, the even element in the high nibble.
constexpr int64_t nf4_code_bytes(int64_t elements) { return (elements + 1) / 2; }

// Quantises `elements` consecutive elements of a weight, which must start at a block boundary;
// `codes` and `absmax` point to the outputs of that block. The type is f32, bf16 or f16; others
// fail a CHECK. Only the weight's last range may end within a block. A block with an infinity or
// NaN gets an absmax that is not finite; callers must check for that.
void quantize_nf4(base::DType from, const void* source, int64_t elements, uint8_t* codes,
                  float* absmax);

// The mean of all absmax of a weight, added in torch's order for one thread. With more threads,
// torch splits 32,768 or more elements, and its result may differ in the last bits.
float mean_absmax(const float* absmax, int64_t blocks);

// Double quantisation of a range of absmax that starts at a multiple of 256: absmax - offset is
// quantised in blocks of 256 by the signed dynamic map. Only the last range may end within a block.
void quantize_absmax(const float* absmax, int64_t blocks, float offset, uint8_t* codes,
                     float* nested_absmax);
// The same for all absmax of a weight; returns the offset, which is their mean.
float quantize_absmax(const float* absmax, int64_t blocks, uint8_t* codes, float* nested_absmax);

}  // namespace snug::formats
