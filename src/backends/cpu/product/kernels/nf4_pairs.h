// Products of up to sixteen rows with NF4 codes, where instructions multiply pairs of bf16: for
// nf4.cpp only. Values of the weight are rounded like dequantize_nf4's, so products have the values
// that they have with the dequantised weight. Must be compiled without contraction: a nested scale
// is a product and a sum, each rounded.
//
// A block's 32 bytes are sixteen words of four codes. They are broadcast to both halves of a
// vector, and shifts bring two of the four codes into place, another one in each half. A lookup
// uses the low five bits of a word; the fifth chooses between two copies of the block's table.
//
// Four outputs are computed at a time, for up to four rows: their sums stay in registers. Further
// rows find the values in the first-level cache. A row's sums do not depend on how many rows there
// are.
#pragma once

#include "backends/cpu/kernels/lane_sums.h"
#include "backends/cpu/kernels/vector.h"
#include "backends/cpu/product/kernels/nf4.h"
#include "backends/cpu/product/kernels/nf4_scales.h"

#if defined(__AVX512BF16__) && !defined(__AMX_BF16__)
#define SNUG_NF4_PAIRS

namespace snug::backends::cpu::SNUG_ISA {

constexpr int64_t kPairBlock = 64;   // elements in a block
constexpr int64_t kPairVectors = 2;  // vectors of bf16 in a block
constexpr int64_t kPairStep = 32;    // elements in one of them
constexpr int kPairOutputs = 4;      // computed at a time
constexpr int kPairRows = 4;         // likewise
constexpr int64_t kPairMostRows = 16;
constexpr int64_t kPairChunk =
    32;  // blocks of each output whose values stay in the first-level cache
constexpr int64_t kPairMostScales = 2048;
constexpr int64_t kPairAhead = 4096;  // least bytes of codes that are asked for ahead

SNUG_INLINE __m512i kept_in_register(__m512i x) {
  // Otherwise gcc 12 loads it again for each use: loads take as long as the products.
  __asm__("" : "+v"(x));
  return x;
}

// The order of a block's elements in its two vectors: that in which its codes are decoded.
struct PairOrder {
  uint16_t element[kPairVectors][kPairStep];
};
constexpr PairOrder pair_order() {
  constexpr int kPlace[4] = {1, 0, 3, 2};  // element of each code of a word, lowest code first
  PairOrder order{};
  for (int code = 0; code < 4; ++code)
    for (int word = 0; word < kLanes; ++word)
      order.element[code / 2][code % 2 * kLanes + word] =
          static_cast<uint16_t>(4 * word + kPlace[code]);
  return order;
}
alignas(64) constexpr PairOrder kPairOrder = pair_order();

SNUG_INLINE void arrange_pairs(const uint16_t* x, uint16_t* arranged, int64_t in) {
  for (int64_t start = 0; start < in; start += kPairBlock) {
    const __m512i first = _mm512_loadu_si512(x + start);
    const __m512i last = _mm512_loadu_si512(x + start + kPairStep);
    for (int64_t i = 0; i < kPairVectors; ++i) {
      const __m512i order = _mm512_load_si512(kPairOrder.element[i]);
      _mm512_storeu_si512(arranged + start + i * kPairStep,
                          _mm512_permutex2var_epi16(first, order, last));
    }
  }
}

// What decoding needs in registers: the values of the codes, and how far the words of each vector
// are shifted.
struct PairDecoder {
  __m512 values;
  __m512i shifts[kPairVectors];
};
SNUG_INLINE __m512i pair_shifts(int16_t lower, int16_t upper) {
  return _mm512_mask_set1_epi16(_mm512_set1_epi16(lower), 0xffff0000U, upper);
}
SNUG_INLINE PairDecoder pair_decoder(const float* values) {
  return {_mm512_loadu_ps(values), {pair_shifts(0, 4), pair_shifts(8, 12)}};
}

SNUG_INLINE void decode_block(const PairDecoder& decoder, const uint8_t* codes, float scale,
                              __m512i (&w)[kPairVectors]) {
  const __m512 scaled = _mm512_mul_ps(decoder.values, _mm512_set1_ps(scale));
  const auto table = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(scaled, scaled));
  const __m512i words = _mm512_maskz_broadcast_i64x4(
      0xff, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes)));
  for (int64_t i = 0; i < kPairVectors; ++i)
    w[i] = _mm512_maskz_permutexvar_epi16(~__mmask32{0},
                                          _mm512_srlv_epi16(words, decoder.shifts[i]), table);
}

// Blocks [first, first + count) of some outputs.
struct PairChunk {
  int64_t first, count;
  const uint8_t* codes;  // of the first output's first block
  int64_t output_bytes;
  const float* scales;  // count of each output
};

// Sums of each row with up to sixteen outputs.
struct PairSums {
  Float16Lanes at[kPairMostRows][kSumsAtOnce];
};

// Vectors of decoded blocks: those of kPairOutputs outputs next to one another.
struct PairValues {
  alignas(64) __m512i at[kPairChunk * kPairVectors][kPairOutputs];
};

// Rows from `row` on, and outputs of a chunk from `output` on.
struct PairPart {
  const Nf4Product& product;
  const PairChunk& chunk;
  int64_t row;
  int64_t output;
  PairSums& sums;

  const uint16_t* x(int64_t i) const {
    return static_cast<const uint16_t*>(product.x) + (row + i) * product.in +
           chunk.first * kPairBlock;
  }
};

template <int kRows, int kWide>
SNUG_INLINE void load_sums(const PairPart& part, Float16Lanes (&sums)[kRows][kWide]) {
  for (int row = 0; row < kRows; ++row)
    for (int i = 0; i < kWide; ++i)
      sums[row][i] =
          part.chunk.first == 0 ? Float16Lanes{} : part.sums.at[part.row + row][part.output + i];
}
template <int kRows, int kWide>
SNUG_INLINE void store_sums(const PairPart& part, const Float16Lanes (&sums)[kRows][kWide]) {
  for (int row = 0; row < kRows; ++row)
    for (int i = 0; i < kWide; ++i) part.sums.at[part.row + row][part.output + i] = sums[row][i];
}

// Adds the products of kRows rows with the codes of a chunk; keeps the values if there are further
// rows.
template <int kRows, int kWide, bool kKeeps>
static void add_codes(const PairPart& part, const PairDecoder& decoder, PairValues* values) {
  const PairChunk chunk = part.chunk;
  const uint8_t* codes = chunk.codes + part.output * chunk.output_bytes;
  const float* scales = chunk.scales + part.output * chunk.count;
  const uint8_t* ahead = codes + (kWide - 1) * chunk.first * (kPairBlock / 2) +
                         larger_of(kPairAhead, kWide * chunk.output_bytes);
  const bool is_far = kWide * chunk.output_bytes > kPairAhead;
  const uint16_t* x = part.x(0);
  const int64_t x_stride = part.product.in;
  Float16Lanes sums[kRows][kWide];
  load_sums(part, sums);
  for (int64_t block = 0; block < chunk.count; ++block) {
    __m512i of_x[kRows][kPairVectors];
    for (int row = 0; row < kRows; ++row)
      for (int64_t i = 0; i < kPairVectors; ++i)
        of_x[row][i] = kept_in_register(
            _mm512_loadu_si512(x + row * x_stride + block * kPairBlock + i * kPairStep));
    for (int output = 0; output < kWide; ++output) {
      const uint8_t* of_block = codes + output * chunk.output_bytes + block * (kPairBlock / 2);
      if (output % 2 == 0) {
        if (kKeeps || is_far)
          __builtin_prefetch(ahead + (block * kWide + output) * (kPairBlock / 2), 0, 2);
        else
          __builtin_prefetch(ahead + (block * kWide + output) * (kPairBlock / 2));
      }
      __m512i w[kPairVectors];
      decode_block(decoder, of_block, scales[output * chunk.count + block], w);
      for (int64_t i = 0; i < kPairVectors; ++i) {
        if constexpr (kKeeps) values->at[block * kPairVectors + i][output] = w[i];
        for (int row = 0; row < kRows; ++row)
          sums[row][output] = add_pair_products(sums[row][output], of_x[row][i], w[i]);
      }
    }
  }
  store_sums(part, sums);
}

// Adds the products of kRows rows with kept values.
template <int kRows, int kWide>
static void add_values(const PairPart& part, const PairValues& values) {
  const uint16_t* x = part.x(0);
  const int64_t x_stride = part.product.in;
  const int64_t vectors = part.chunk.count * kPairVectors;
  Float16Lanes sums[kRows][kWide];
  load_sums(part, sums);
  for (int64_t i = 0; i < vectors; ++i) {
    __m512i w[kWide];
    for (int output = 0; output < kWide; ++output)
      w[output] = kept_in_register(values.at[i][output]);
    for (int row = 0; row < kRows; ++row) {
      const __m512i of_x = kept_in_register(_mm512_loadu_si512(x + row * x_stride + i * kPairStep));
      for (int output = 0; output < kWide; ++output)
        sums[row][output] = add_pair_products(sums[row][output], of_x, w[output]);
    }
  }
  store_sums(part, sums);
}

// The same for up to kRows rows.
template <int kWide, bool kKeeps, int kRows = kPairRows>
SNUG_INLINE void add_codes_of(int64_t rows, const PairPart& part, const PairDecoder& decoder,
                              PairValues* values) {
  if constexpr (kRows > 1)
    if (rows < kRows) return add_codes_of<kWide, kKeeps, kRows - 1>(rows, part, decoder, values);
  add_codes<kRows, kWide, kKeeps>(part, decoder, values);
}
template <int kWide, int kRows = kPairRows>
SNUG_INLINE void add_values_of(int64_t rows, const PairPart& part, const PairValues& values) {
  if constexpr (kRows > 1)
    if (rows < kRows) return add_values_of<kWide, kRows - 1>(rows, part, values);
  add_values<kRows, kWide>(part, values);
}

// All rows, in groups of about equal size.
template <int kWide>
SNUG_INLINE void add_rows(PairPart part, const PairDecoder& decoder, PairValues& values) {
  const int64_t rows = part.product.rows;
  if (rows <= kPairRows) return add_codes_of<kWide, false>(rows, part, decoder, nullptr);
  const int64_t groups = (rows + kPairRows - 1) / kPairRows;
  const int64_t most = (rows + groups - 1) / groups;
  add_codes_of<kWide, true>(most, part, decoder, &values);
  for (part.row = most; part.row < rows; part.row += most)
    add_values_of<kWide>(smaller_of(most, rows - part.row), part, values);
}

// Up to kSumsAtOnce outputs.
template <typename Y>
static void multiply_pairs(const Nf4Product& product, const PairDecoder& decoder, int64_t output,
                           int64_t outputs) {
  const int64_t blocks = product.in / kPairBlock;
  PairSums sums;
  PairValues values;
  alignas(64) float scales[kPairMostScales];
  const bool is_whole = blocks <= kPairChunk;
  const int64_t most =
      is_whole || product.rows > kPairRows ? kPairChunk : kPairMostScales / kPairOutputs;
  PairChunk chunk{
      .first = 0, .count = 0, .codes = nullptr, .output_bytes = product.in / 2, .scales = scales};
  for (; chunk.first < blocks; chunk.first += most) {
    chunk.count = smaller_of(most, blocks - chunk.first);
    const int64_t first = output * blocks + chunk.first;
    chunk.codes = product.weight.codes + first * (kPairBlock / 2);
    if (chunk.count == blocks)
      write_scales(product.weight, first, outputs * blocks, scales);
    else
      for (int64_t i = 0; i < outputs; ++i)
        write_scales(product.weight, first + i * blocks, chunk.count, scales + i * chunk.count);
    int64_t i = 0;
    for (; i + kPairOutputs <= outputs; i += kPairOutputs)
      add_rows<kPairOutputs>({product, chunk, 0, i, sums}, decoder, values);
    for (; i < outputs; ++i) add_rows<1>({product, chunk, 0, i, sums}, decoder, values);
  }
  for (int64_t row = 0; row < product.rows; ++row) {
    for (int64_t i = outputs; i < kSumsAtOnce; ++i) sums.at[row][i] = Float16Lanes{};
    Y all[kSumsAtOnce];
    store(all, lane_sums(sums.at[row]));
    __builtin_memcpy(static_cast<Y*>(product.y) + row * product.y_stride + output, all,
                     static_cast<uint64_t>(outputs) * sizeof(Y));
  }
}

template <typename Y>
static void multiply_pairs(const Nf4Product& product) {
  const PairDecoder decoder = pair_decoder(product.weight.values);
  const int64_t most = product.in <= kPairChunk * kPairBlock ? kSumsAtOnce : kPairOutputs;
  for (int64_t output = product.begin; output < product.end; output += most)
    multiply_pairs<Y>(product, decoder, output, smaller_of(most, product.end - output));
}

}  // namespace snug::backends::cpu::SNUG_ISA

#endif
