// Blocks of 32 values. Those that end in 0 have codes on both sides of zero, value = step * code;
// those that end in 1 count from their least value, value = step * code + least. In the order of
// their bytes:
//
//   q8_0   step (half), 32 codes of 8 bits
//   q4_0   step (half), 32 codes + 8 of 4 bits
//   q5_0   step (half), 32 fifth bits, 32 lower four bits, of codes + 16
//   q4_1   step (half), least (half), 32 codes of 4 bits
//   q5_1   step (half), least (half), 32 fifth bits, 32 lower four bits
//
// SmallCodes are computed with the step before it is rounded to a half, and each operation rounds
// once: this file is compiled without fused products and sums.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "formats/gguf/blocks/block_bytes.h"
#include "formats/gguf/blocks/block_kinds.h"

namespace snug::formats {
namespace {

constexpr int kSmallBlock = 32;
using SmallCodes = std::array<uint8_t, kSmallBlock>;

float step_reciprocal(float step) { return step != 0 ? 1.0F / step : 0.0F; }

// Magnitudes compare as their bits do.
float largest_in_block(const float* values) {
  int32_t largest = 0;
  for (int i = 0; i < kSmallBlock; ++i)
    largest = std::max(largest, std::bit_cast<int32_t>(values[i]) & 0x7fffffff);
  return std::bit_cast<float>(largest);
}

// Half-way cases away from zero, for magnitudes below 2^22. Adding the number just below a half
// does not carry what is just below a half-way case across it.
int32_t rounded_away(float value) {
  return static_cast<int32_t>(value + std::copysign(0.49999997F, value));
}

// The lower four bits of codes, and above them one bit each if there are five.
template <int kBits>
void put_codes(const SmallCodes& codes, uint8_t* bytes) {
  if constexpr (kBits == 5) {
    pack_codes<1, 1, 4>(codes.data(), kSmallBlock, bytes);
    bytes += kSmallBlock / 8;
  }
  pack_codes<4, 16>(codes.data(), kSmallBlock, bytes);
}

template <int kBits>
SmallCodes codes_at(const uint8_t* bytes) {
  SmallCodes codes{};
  if constexpr (kBits == 5) {
    unpack_codes<1, 1, 4>(bytes, kSmallBlock, codes.data());
    bytes += kSmallBlock / 8;
  }
  unpack_codes<4, 16>(bytes, kSmallBlock, codes.data());
  return codes;
}

template <int kBits>
constexpr int kCodeBytes = kSmallBlock* kBits / 8;

// The value of largest magnitude, the first of several; 0 has no sign.
float extreme_of(const float* values) {
  const float largest = largest_in_block(values);
  if (largest == 0) return 0;
  return *std::find_if(values, values + kSmallBlock,
                       [&](float value) { return std::fabs(value) == largest; });
}

// The extreme value gets the lowest code, which has no counterpart above zero.
template <int kBits>
void quantise_around_zero(const float* values, uint8_t* block) {
  constexpr int kZero = 1 << (kBits - 1);
  const float step = extreme_of(values) / -kZero;
  const float inverse = step_reciprocal(step);
  SmallCodes codes{};
  // Of steps so small that their step_reciprocal is infinite, only code 0 is left.
  if (std::isfinite(inverse))
    for (size_t i = 0; i < kSmallBlock; ++i)
      codes[i] = static_cast<uint8_t>(
          std::min(2 * kZero - 1, static_cast<int32_t>(values[i] * inverse + (kZero + 0.5F))));
  put_half(step, block);
  put_codes<kBits>(codes, block + 2);
}

template <int kBits>
void dequantise_around_zero(const uint8_t* block, float* values) {
  const float step = half_at(block);
  const SmallCodes codes = codes_at<kBits>(block + 2);
  for (size_t i = 0; i < kSmallBlock; ++i)
    values[i] = static_cast<float>(codes[i] - (1 << (kBits - 1))) * step;
}

template <int kBits>
void quantise_above_least(const float* values, uint8_t* block) {
  constexpr int kHighest = (1 << kBits) - 1;
  float least = values[0];
  float most = values[0];
  for (int i = 1; i < kSmallBlock; ++i) {
    least = values[i] < least ? values[i] : least;
    most = values[i] > most ? values[i] : most;
  }
  const float step = (most - least) / kHighest;
  const float inverse = step_reciprocal(step);
  SmallCodes codes{};
  // Of steps that are infinite, or so small that their step_reciprocal is, only code 0 is left.
  if (std::isfinite(inverse) && std::isfinite(step))
    for (size_t i = 0; i < kSmallBlock; ++i)
      codes[i] = static_cast<uint8_t>(
          std::min(kHighest, static_cast<int32_t>((values[i] - least) * inverse + 0.5F)));
  put_half(step, block);
  put_half(least, block + 2);
  put_codes<kBits>(codes, block + 4);
}

template <int kBits>
void dequantise_above_least(const uint8_t* block, float* values) {
  const float step = half_at(block);
  const float least = half_at(block + 2);
  const SmallCodes codes = codes_at<kBits>(block + 4);
  for (size_t i = 0; i < kSmallBlock; ++i) values[i] = static_cast<float>(codes[i]) * step + least;
}

void quantise_in_8_bits(const float* values, uint8_t* block) {
  const float step = largest_in_block(values) / 127;
  float inverse = step_reciprocal(step);
  if (std::isinf(inverse)) inverse = 0;  // of steps so small, only code 0 is left
  put_half(step, block);
  for (int i = 0; i < kSmallBlock; ++i)
    block[2 + i] = static_cast<uint8_t>(rounded_away(values[i] * inverse));
}

void dequantise_in_8_bits(const uint8_t* block, float* values) {
  const float step = half_at(block);
  for (int i = 0; i < kSmallBlock; ++i)
    values[i] = static_cast<float>(static_cast<int8_t>(block[2 + i])) * step;
}

template <int kBytes>
void each_quantised(void (*quantise)(const float*, uint8_t*), const float* values, int64_t blocks,
                    uint8_t* bytes) {
  for (int64_t i = 0; i < blocks; ++i) quantise(values + i * kSmallBlock, bytes + i * kBytes);
}

template <int kBytes>
void each_dequantised(void (*dequantise)(const uint8_t*, float*), const uint8_t* bytes,
                      int64_t blocks, float* values) {
  for (int64_t i = 0; i < blocks; ++i) dequantise(bytes + i * kBytes, values + i * kSmallBlock);
}

}  // namespace

void quantise_q4_0(const float* values, int64_t blocks, uint8_t* bytes) {
  each_quantised<2 + kCodeBytes<4>>(quantise_around_zero<4>, values, blocks, bytes);
}
void quantise_q5_0(const float* values, int64_t blocks, uint8_t* bytes) {
  each_quantised<2 + kCodeBytes<5>>(quantise_around_zero<5>, values, blocks, bytes);
}
void quantise_q4_1(const float* values, int64_t blocks, uint8_t* bytes) {
  each_quantised<4 + kCodeBytes<4>>(quantise_above_least<4>, values, blocks, bytes);
}
void quantise_q5_1(const float* values, int64_t blocks, uint8_t* bytes) {
  each_quantised<4 + kCodeBytes<5>>(quantise_above_least<5>, values, blocks, bytes);
}
void quantise_q8_0(const float* values, int64_t blocks, uint8_t* bytes) {
  each_quantised<2 + kCodeBytes<8>>(quantise_in_8_bits, values, blocks, bytes);
}

void dequantise_q4_0(const uint8_t* bytes, int64_t blocks, float* values) {
  each_dequantised<2 + kCodeBytes<4>>(dequantise_around_zero<4>, bytes, blocks, values);
}
void dequantise_q5_0(const uint8_t* bytes, int64_t blocks, float* values) {
  each_dequantised<2 + kCodeBytes<5>>(dequantise_around_zero<5>, bytes, blocks, values);
}
void dequantise_q4_1(const uint8_t* bytes, int64_t blocks, float* values) {
  each_dequantised<4 + kCodeBytes<4>>(dequantise_above_least<4>, bytes, blocks, values);
}
void dequantise_q5_1(const uint8_t* bytes, int64_t blocks, float* values) {
  each_dequantised<4 + kCodeBytes<5>>(dequantise_above_least<5>, bytes, blocks, values);
}
void dequantise_q8_0(const uint8_t* bytes, int64_t blocks, float* values) {
  each_dequantised<2 + kCodeBytes<8>>(dequantise_in_8_bits, bytes, blocks, values);
}

}  // namespace snug::formats
