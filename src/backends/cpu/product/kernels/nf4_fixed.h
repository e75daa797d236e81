// Products of some rows with NF4 codes in fixed point: for nf4.cpp only, where a few rows are
// multiplied on a processor with AMX tiles. Must be compiled without contraction (nf4_scales.h).
#pragma once

#include "backends/cpu/kernels/vector.h"
#include "backends/cpu/product/kernels/nf4.h"
#include "backends/cpu/product/kernels/nf4_scales.h"

#if defined(__AMX_BF16__)
#define SNUG_NF4_FIXED

namespace snug::backends::cpu::SNUG_ISA {

constexpr int64_t kFixedBlock = 64;
constexpr int64_t kFixedPair = 2 * kLanes;  // words in the codes of two blocks
constexpr int64_t kFixedAhead = 4096;       // bytes of codes that are prefetched ahead

// bf16 is computed in fixed point: instructions that multiply pairs of bf16 take four times as long
// as those for 16-bit integers. Each block of x is scaled to 14 bits and a sign by its largest
// element, and the table of codes likewise, so that the eight products that a lane adds stay below
// 2^31.
//
// 64 bytes are processed at a time, as 32 words of four codes. A lookup uses the low five bits of a
// word; the fifth chooses between two copies of the table, so that shifts bring each of the four
// codes into place. The first block's sums are in the lower eight lanes and the second's in the
// upper eight.
constexpr float kOne = 16384;      // fixed-point form of a code's value 1
constexpr float kLargest = 16383;  // fixed-point form of the largest element in a block of x

constexpr int64_t values_of(int64_t in) {
  return (in + 2 * kFixedBlock - 1) / (2 * kFixedBlock) * 2 * kFixedBlock;
}
constexpr int64_t scales_of(int64_t in) {
  return (in / kFixedBlock + kLanes - 1) / kLanes * kLanes;
}

// A row has its values, then one scale per block.
constexpr int64_t fixed_bytes(int64_t in) {
  return values_of(in) * int64_t{sizeof(int16_t)} + scales_of(in) * int64_t{sizeof(float)};
}

// Converts a block to fixed point; returns the unit. If any element is NaN or infinite, so is the
// unit.
SNUG_INLINE float fix_block(const uint16_t* x, int32_t* fixed) {
  uint32_t largest_bits = 0;
  for (int64_t i = 0; i < kFixedBlock; ++i) {
    const uint32_t bits = x[i] & 0x7fffU;
    largest_bits = bits > largest_bits ? bits : largest_bits;
  }
  const float magnitude = __builtin_bit_cast(float, largest_bits << 16);
  const float largest = magnitude < 1e-30F ? 1e-30F : magnitude;
  const Float16Lanes factor = splat(kLargest / largest);
  for (int64_t i = 0; i < kFixedBlock; i += kLanes) {
    const Float16Lanes scaled = load(x + i) * factor;
    _mm512_storeu_si512(fixed + i,
                        _mm512_maskz_cvtps_epi32(0xffff, reinterpret_cast<__m512>(scaled)));
  }
  return largest / kLargest;
}

// Of every 128 elements, the ones for the lowest code of each word come first. Missing elements at
// the end are 0.
SNUG_INLINE void arrange_fixed(const uint16_t* x, int16_t* arranged, int64_t in) {
  constexpr int64_t kPlace[4] = {1, 0, 3, 2};  // element of each code, lowest code first
  auto* scales = reinterpret_cast<float*>(arranged + values_of(in));
  for (int64_t i = 0; i < scales_of(in); ++i) scales[i] = 0;
  for (int64_t start = 0; start < in; start += 2 * kFixedBlock) {
    int32_t fixed[2 * kFixedBlock] = {};
    for (int64_t i = start; i < start + 2 * kFixedBlock && i < in; i += kFixedBlock)
      scales[i / kFixedBlock] = fix_block(x + i, fixed + i - start) / kOne;
    for (int64_t code = 0; code < 4; ++code)
      for (int64_t word = 0; word < kFixedPair; ++word)
        arranged[start + code * kFixedPair + word] =
            static_cast<int16_t>(fixed[4 * word + kPlace[code]]);
  }
}

SNUG_INLINE __m512i fixed_table(const float* values) {
  const Float16Lanes scaled = load(values) * splat(kOne);
  const __m512i fixed = _mm512_maskz_cvtps_epi32(0xffff, reinterpret_cast<__m512>(scaled));
  return _mm512_maskz_broadcast_i64x4(0xff, _mm512_maskz_cvtepi32_epi16(0xffff, fixed));
}

SNUG_INLINE __m512i look_up_words(__m512i table, __m512i index) {
  return _mm512_maskz_permutexvar_epi16(0xffffffffU, index, table);
}

// For each i, lane i / 8 of sixteen: it brings the scales of a pair of blocks to the lanes of the
// pair's sums.
struct PairLanes {
  int32_t lane[8 * kLanes];
};
constexpr PairLanes pair_lanes() {
  PairLanes lanes{};
  for (int32_t i = 0; i < 8 * kLanes; ++i) lanes.lane[i] = i / 8;
  return lanes;
}
alignas(64) constexpr PairLanes kPairLanes = pair_lanes();

// Each part of x is loaded once for two outputs. One row loads no part twice, but the sums of four
// outputs take less than four sums.
template <int kRows>
constexpr int kFixedOutputs = kRows == 1 ? 4 : 2;

// Blocks [first, first + kLanes) of some outputs, or the last ones.
template <int kRows, int kWide>
struct Blocks {
  int64_t first;
  int64_t count;
  const uint8_t* codes;  // of the first output
  int64_t output_bytes;
  Float16Lanes scales[kRows][kWide];
};

// Multiplies the codes of two blocks, pair number `pair`; `present` are the words that there are.
template <int kRows, int kWide>
SNUG_INLINE void multiply_pair(const Blocks<kRows, kWide>& blocks, int64_t pair, __mmask16 present,
                               __m512i table, const int16_t* (&x)[kRows],
                               Float16Lanes (&sums)[kRows][kWide]) {
  __m512i w[kWide][4];
  for (int i = 0; i < kWide; ++i) {
    const uint8_t* codes = blocks.codes + i * blocks.output_bytes + pair * kFixedBlock;
    __builtin_prefetch(codes + kFixedAhead);
    const __m512i words = _mm512_maskz_loadu_epi32(present, codes);
    w[i][0] = look_up_words(table, words);
    w[i][1] = look_up_words(table, _mm512_srli_epi16(words, 4));
    w[i][2] = look_up_words(table, _mm512_srli_epi16(words, 8));
    w[i][3] = look_up_words(table, _mm512_srli_epi16(words, 12));
  }
  const __m512i lanes = _mm512_load_si512(kPairLanes.lane + pair * kLanes);
  for (int row = 0; row < kRows; ++row) {
    const int16_t* of_pair = x[row] + (blocks.first + 2 * pair) * kFixedBlock;
    __m512i part[kWide];
    for (int i = 0; i < kWide; ++i) part[i] = _mm512_setzero_si512();
    for (int code = 0; code < 4; ++code) {
      __m512i of_code = _mm512_loadu_si512(of_pair + code * kFixedPair);
      // Otherwise gcc 12 loads it again for each output: loads take as long as the products.
      if constexpr (kRows > 1) __asm__("" : "+v"(of_code));
      for (int i = 0; i < kWide; ++i) part[i] = _mm512_dpwssd_epi32(part[i], w[i][code], of_code);
    }
    for (int i = 0; i < kWide; ++i) {
      const __m512 scale = _mm512_maskz_permutexvar_ps(
          0xffff, lanes, reinterpret_cast<__m512>(blocks.scales[row][i]));
      sums[row][i] = multiply_add(lanes_as<Float16Lanes>(_mm512_maskz_cvtepi32_ps(0xffff, part[i])),
                                  lanes_as<Float16Lanes>(scale), sums[row][i]);
    }
  }
}

template <int kRows, int kWide>
SNUG_INLINE void multiply_fixed(const Nf4Product& product, const int16_t* arranged, int64_t output,
                                Float16Lanes (&sums)[kRows][kWide]) {
  const int64_t blocks = product.in / kFixedBlock;
  const __m512i table = fixed_table(product.weight.values);
  const int16_t* x[kRows];
  for (int row = 0; row < kRows; ++row)
    x[row] = arranged + row * fixed_bytes(product.in) / int64_t{sizeof(int16_t)};
  Blocks<kRows, kWide> some;
  some.output_bytes = product.in / 2;
  for (some.first = 0; some.first < blocks; some.first += kLanes) {
    const int64_t index = output * blocks + some.first;
    some.count = smaller_of(kLanes, blocks - some.first);
    some.codes = product.weight.codes + index * (kFixedBlock / 2);
    for (int i = 0; i < kWide; ++i) {
      const Float16Lanes of_blocks = block_scales(product.weight, index + i * blocks, some.count);
      for (int row = 0; row < kRows; ++row)
        some.scales[row][i] =
            of_blocks *
            load(reinterpret_cast<const float*>(x[row] + values_of(product.in)) + some.first);
    }
    const int64_t pairs = some.count / 2;
    for (int64_t pair = 0; pair < pairs; ++pair)
      multiply_pair<kRows, kWide>(some, pair, 0xffff, table, x, sums);
    if (some.count % 2 != 0) multiply_pair<kRows, kWide>(some, pairs, 0xff, table, x, sums);
  }
}

}  // namespace snug::backends::cpu::SNUG_ISA

#endif
