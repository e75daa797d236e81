// NF4, bitsandbytes' 4-bit storage of a weight: blocks of 64 consecutive elements of the flattened
// row-major weight, each with the largest magnitude in fp32 and a code of 4 bits per element. Bytes
// are those of bitsandbytes 0.50 on a CPU, one for one; docs/nf4.md says where its CUDA kernels
// differ. Values are made from them by the operation dequantize_nf4 (program/kinds/product/nf4.h).
// Threading: pure functions without allocation; distinct ranges may run in parallel.
#pragma once

#include "base/dtype.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace snug::formats {

inline constexpr int64_t kNf4BlockSize = 64;
// Blocks whose absmax share one fp32 scale when they are stored in 8 bits (double quantisation).
inline constexpr int64_t kNestedBlockSize = 256;

// What a code stands for, times the block's absmax.
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

// Halfway between neighbouring codes, in fp32; a scaled element above one takes the upper code, a
// tie the lower.
inline constexpr std::array<float, 15> kNf4Thresholds = [] {
  std::array<float, 15> thresholds{};
  for (size_t i = 0; i < thresholds.size(); ++i)
    thresholds[i] = (kNf4Codes[i] + kNf4Codes[i + 1]) / 2.0F;
  return thresholds;
}();

// Blocks of a weight of so many elements; the last one may be partial.
constexpr int64_t nf4_blocks(int64_t elements) {
  return (elements + kNf4BlockSize - 1) / kNf4BlockSize;
}
// Scales of the 8-bit form of so many absmax.
constexpr int64_t nested_blocks(int64_t blocks) {
  return (blocks + kNestedBlockSize - 1) / kNestedBlockSize;
}
// Bytes of its codes: two a byte, the even element in the high nibble.
constexpr int64_t nf4_code_bytes(int64_t elements) { return (elements + 1) / 2; }

// Quantises `elements` consecutive elements of a weight, f32, bf16 or f16 (CHECKs others), from a
// block boundary on: `codes` and `absmax` are where that boundary's are. Only the weight's last
// range may end within a block. A block that holds an infinity or NaN gets an absmax that is not
// finite, which callers must look for.
void quantize_nf4(base::DType from, const void* source, int64_t elements, uint8_t* codes,
                  float* absmax);

// The mean of all absmax of a weight, summed in the order in which torch sums them on one thread.
// With more threads torch splits what has 32,768 elements or more and may differ in the last bits.
float mean_absmax(const float* absmax, int64_t blocks);

// Double quantisation of a range of absmax that begins at a multiple of 256: absmax - offset in
// blocks of 256 by the signed dynamic map. Only the last range may end within a block.
void quantize_absmax(const float* absmax, int64_t blocks, float offset, uint8_t* codes,
                     float* nested_absmax);
// All of a weight's absmax; returns the offset, which is their mean.
float quantize_absmax(const float* absmax, int64_t blocks, uint8_t* codes, float* nested_absmax);

}  // namespace snug::formats
