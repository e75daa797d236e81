// A byte holds two codes: that of an even element in its upper four bits, that of the next element
// in its lower four. With sixteen bytes widened to sixteen lanes, a shift gives the even codes, and
// the odd ones need none: a lookup uses the low four bits. The values of the 16 codes are one
// vector, which is multiplied by a block's absmax to get the block's table. Compiled without
// contraction: a nested scale is a product and a sum, each rounded.
#include "backends/cpu/product/kernels/nf4.h"

#include "backends/cpu/kernels/element_table.h"
#include "backends/cpu/kernels/lane_sums.h"
#include "backends/cpu/kernels/vector.h"
#include "backends/cpu/product/kernels/nf4_scales.h"

namespace snug::backends::cpu::SNUG_ISA {
namespace {

constexpr int64_t kBlock = 64;
constexpr int64_t kNested = 256;
constexpr int64_t kPair = 2 * kLanes;  // elements in sixteen bytes
// How many bytes ahead codes are prefetched. A block takes some thirty instructions for its 32
// bytes, so a core's out-of-order execution only reaches a few cache lines ahead: 5 GB/s, where
// memory could deliver 20.
constexpr int64_t kAhead = 4096;

SNUG_INLINE float scale_of(const Nf4Weight& weight, int64_t block) {
  if (weight.absmax != nullptr) return weight.absmax[block];
  const float product =
      weight.nested_map[weight.nested_codes[block]] * weight.nested_absmax[block / kNested];
  return product + weight.nested_offset;
}

SNUG_INLINE Uint16Lanes widen_bytes(const uint8_t* bytes) {
  using Bytes = uint8_t __attribute__((vector_size(16)));
  Bytes narrow;
  __builtin_memcpy(&narrow, bytes, sizeof narrow);
#if defined(__AVX512F__)
  return lanes_as<Uint16Lanes>(
      _mm512_maskz_cvtepu8_epi32(0xffff, reinterpret_cast<__m128i>(narrow)));
#else
  return widened(narrow);
#endif
}

// table[index % 16] in every lane.
SNUG_INLINE Float16Lanes look_up(Float16Lanes table, Uint16Lanes index) {
#if defined(__AVX512F__)
  return lanes_as<Float16Lanes>(_mm512_maskz_permutexvar_ps(
      0xffff, reinterpret_cast<__m512i>(index), reinterpret_cast<__m512>(table)));
#else
  float values[kLanes];
  store(values, table);
  float found[kLanes];
  for (int64_t i = 0; i < kLanes; ++i) found[i] = values[index[i] & 15U];
  return load(found);
#endif
}

SNUG_INLINE float even(const float* table, uint8_t byte) { return table[byte >> 4]; }
SNUG_INLINE float odd(const float* table, uint8_t byte) { return table[byte & 15]; }

SNUG_INLINE void store_one(float* out, float x) { *out = x; }
template <typename Half>
SNUG_INLINE void store_one(Half* out, float x) {
  Half sixteen[kLanes];
  store(sixteen, splat(x));
  *out = sixteen[0];
}

// Dequantises the rest of a tensor's last block.
template <typename W>
SNUG_INLINE void dequantize_tail(const uint8_t* codes, const float* table, int64_t n, W* w) {
  for (int64_t i = 0; i < n; ++i)
    store_one(w + i, i % 2 == 0 ? even(table, codes[i / 2]) : odd(table, codes[i / 2]));
}

// Dequantises sixteen bytes to 32 elements in order.
SNUG_INLINE void dequantize_pair(const uint8_t* codes, Float16Lanes table, float* w) {
  const Uint16Lanes bytes = widen_bytes(codes);
  const Float16Lanes high = look_up(table, bytes >> 4);
  const Float16Lanes low = look_up(table, bytes);
#if defined(__AVX512F__)
  const __m512i first = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  const __m512i last =
      _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  const auto a = reinterpret_cast<__m512>(high);
  const auto b = reinterpret_cast<__m512>(low);
  store(w, lanes_as<Float16Lanes>(_mm512_permutex2var_ps(a, first, b)));
  store(w + kLanes, lanes_as<Float16Lanes>(_mm512_permutex2var_ps(a, last, b)));
#else
  for (int64_t i = 0; i < kLanes; ++i) {
    w[2 * i] = high[i];
    w[2 * i + 1] = low[i];
  }
#endif
}

// Rounds the table instead of each element: a code's rounded value is the same everywhere in a
// block.
SNUG_INLINE Half16Lanes rounded(Float16Lanes table, const uint16_t*) { return to_bf16(table); }
SNUG_INLINE Half16Lanes rounded(Float16Lanes table, const Fp16*) { return to_fp16(table); }

template <typename Half>
SNUG_INLINE void dequantize_pair(const uint8_t* codes, Float16Lanes table, Half* w) {
#if defined(__AVX512BW__)
  const Half16Lanes half = rounded(table, w);
  const __m512i both = _mm512_maskz_broadcast_i64x4(0xff, reinterpret_cast<__m256i>(half));
  // Even codes go to the low halves of 32-bit lanes and odd ones to the high halves, which is the
  // order of the elements. The lookup uses five bits of each 16; the fifth chooses between two
  // identical copies of the table.
  const Uint16Lanes bytes = widen_bytes(codes);
  const Uint16Lanes index = (bytes >> 4) | (bytes << 16);
  const __m512i found =
      _mm512_maskz_permutexvar_epi16(0xffffffffU, reinterpret_cast<__m512i>(index), both);
  __builtin_memcpy(w, &found, sizeof found);
#else
  const Half16Lanes half = rounded(table, w);
  Half values[kLanes];
  __builtin_memcpy(values, &half, sizeof half);
  for (int64_t i = 0; i < kLanes; ++i) {
    w[2 * i] = values[codes[i] >> 4];
    w[2 * i + 1] = values[codes[i] & 15];
  }
#endif
}

template <typename W>
void dequantize(const Nf4Weight& weight, int64_t first, int64_t n, void* out) {
  W* w = static_cast<W*>(out);
  const Float16Lanes values = load(weight.values);
  for (int64_t i = 0; i < n; i += kBlock) {
    const uint8_t* codes = weight.codes + (first + i) / 2;
    __builtin_prefetch(codes + kAhead);
    const Float16Lanes table = values * scale_of(weight, (first + i) / kBlock);
    if (n - i >= kBlock) {
      dequantize_pair(codes, table, w + i);
      dequantize_pair(codes + kLanes, table, w + i + kPair);
    } else {
      float scaled[kLanes];
      store(scaled, table);
      dequantize_tail(codes, scaled, n - i, w + i);
    }
  }
}

// The type in which x is arranged, and the size of such a row.
template <typename X>
struct ArrangedOf {
  using Type = float;
  static int64_t bytes(int64_t in) { return in * int64_t{sizeof(float)}; }
};
template <typename X>
using Arranged = typename ArrangedOf<X>::Type;

// Of every 32 elements the even ones come before the odd ones: the order in which 16 bytes of codes
// are decoded.
template <typename X>
void arrange_x(const void* from, void* to, int64_t in) {
  const X* x = static_cast<const X*>(from);
  auto* arranged = static_cast<float*>(to);
  for (int64_t start = 0; start < in; start += kPair) {
    float wide[kPair];
    store(wide, load(x + start));
    store(wide + kLanes, load(x + start + kLanes));
    for (int64_t i = 0; i < kLanes; ++i) {
      arranged[start + i] = wide[2 * i];
      arranged[start + kLanes + i] = wide[2 * i + 1];
    }
  }
}

// The number of outputs that are computed at a time.
template <typename Arranged, int kRows>
constexpr int kOutputs = 1;

// kRows dot products with the weights of one output: each block's sum is multiplied by the scale,
// instead of its elements.
template <int kRows>
SNUG_INLINE void multiply_outputs(const Nf4Product& product, const float* x, int64_t output,
                                  Float16Lanes (&sums)[kRows][1]) {
  const int64_t blocks = product.in / kBlock;
  const Float16Lanes values = load(product.weight.values);
  for (int64_t block = 0; block < blocks; ++block) {
    const int64_t index = output * blocks + block;
    const uint8_t* codes = product.weight.codes + index * (kBlock / 2);
    __builtin_prefetch(codes + kAhead);
    const Uint16Lanes left = widen_bytes(codes);
    const Uint16Lanes right = widen_bytes(codes + kLanes);
    const Float16Lanes w[4] = {look_up(values, left >> 4), look_up(values, left),
                               look_up(values, right >> 4), look_up(values, right)};
    const Float16Lanes scale = splat(scale_of(product.weight, index));
    for (int row = 0; row < kRows; ++row) {
      const float* of_block = x + row * product.in + block * kBlock;
      Float16Lanes part = w[0] * load(of_block);
      for (int i = 1; i < 4; ++i) part = multiply_add(w[i], load(of_block + i * kLanes), part);
      sums[row][0] = multiply_add(part, scale, sums[row][0]);
    }
  }
}

#if defined(__AVX512VNNI__)

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
  return (in + 2 * kBlock - 1) / (2 * kBlock) * 2 * kBlock;
}
constexpr int64_t scales_of(int64_t in) { return (in / kBlock + kLanes - 1) / kLanes * kLanes; }

// The values of a row, then one scale per block.
template <>
struct ArrangedOf<uint16_t> {
  using Type = int16_t;
  static int64_t bytes(int64_t in) {
    return values_of(in) * int64_t{sizeof(int16_t)} + scales_of(in) * int64_t{sizeof(float)};
  }
};

// Converts a block to fixed point; returns the unit. If any element is NaN or infinite, so is the
// unit.
SNUG_INLINE float fix_block(const uint16_t* x, int32_t* fixed) {
  uint32_t largest_bits = 0;
  for (int64_t i = 0; i < kBlock; ++i) {
    const uint32_t bits = x[i] & 0x7fffU;
    largest_bits = bits > largest_bits ? bits : largest_bits;
  }
  const float magnitude = __builtin_bit_cast(float, largest_bits << 16);
  const float largest = magnitude < 1e-30F ? 1e-30F : magnitude;
  const Float16Lanes factor = splat(kLargest / largest);
  for (int64_t i = 0; i < kBlock; i += kLanes) {
    const Float16Lanes scaled = load(x + i) * factor;
    _mm512_storeu_si512(fixed + i,
                        _mm512_maskz_cvtps_epi32(0xffff, reinterpret_cast<__m512>(scaled)));
  }
  return largest / kLargest;
}

// Of every 128 elements, the ones for the lowest code of each word come first. Missing elements at
// the end are 0.
template <>
void arrange_x<uint16_t>(const void* from, void* to, int64_t in) {
  constexpr int64_t kPlace[4] = {1, 0, 3, 2};  // element of each code, lowest code first
  const auto* x = static_cast<const uint16_t*>(from);
  auto* arranged = static_cast<int16_t*>(to);
  auto* scales = reinterpret_cast<float*>(arranged + values_of(in));
  for (int64_t i = 0; i < scales_of(in); ++i) scales[i] = 0;
  for (int64_t start = 0; start < in; start += 2 * kBlock) {
    int32_t fixed[2 * kBlock] = {};
    for (int64_t i = start; i < start + 2 * kBlock && i < in; i += kBlock)
      scales[i / kBlock] = fix_block(x + i, fixed + i - start) / kOne;
    for (int64_t code = 0; code < 4; ++code)
      for (int64_t word = 0; word < kPair; ++word)
        arranged[start + code * kPair + word] =
            static_cast<int16_t>(fixed[4 * word + kPlace[code]]);
  }
}

SNUG_INLINE __m512i fixed_table(const float* values) {
  const Float16Lanes scaled = load(values) * splat(kOne);
  const __m512i fixed = _mm512_maskz_cvtps_epi32(0xffff, reinterpret_cast<__m512>(scaled));
  return _mm512_maskz_broadcast_i64x4(0xff, _mm512_maskz_cvtepi32_epi16(0xffff, fixed));
}

SNUG_INLINE __m512i look_up(__m512i table, __m512i index) {
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
constexpr int kOutputs<int16_t, kRows> = kRows == 1 ? 4 : 2;

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
    const uint8_t* codes = blocks.codes + i * blocks.output_bytes + pair * kBlock;
    __builtin_prefetch(codes + kAhead);
    const __m512i words = _mm512_maskz_loadu_epi32(present, codes);
    w[i][0] = look_up(table, words);
    w[i][1] = look_up(table, _mm512_srli_epi16(words, 4));
    w[i][2] = look_up(table, _mm512_srli_epi16(words, 8));
    w[i][3] = look_up(table, _mm512_srli_epi16(words, 12));
  }
  const __m512i lanes = _mm512_load_si512(kPairLanes.lane + pair * kLanes);
  for (int row = 0; row < kRows; ++row) {
    const int16_t* of_pair = x[row] + (blocks.first + 2 * pair) * kBlock;
    __m512i part[kWide];
    for (int i = 0; i < kWide; ++i) part[i] = _mm512_setzero_si512();
    for (int code = 0; code < 4; ++code) {
      __m512i of_code = _mm512_loadu_si512(of_pair + code * kPair);
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
SNUG_INLINE void multiply_outputs(const Nf4Product& product, const int16_t* arranged,
                                  int64_t output, Float16Lanes (&sums)[kRows][kWide]) {
  const int64_t blocks = product.in / kBlock;
  const __m512i table = fixed_table(product.weight.values);
  const int16_t* x[kRows];
  for (int row = 0; row < kRows; ++row)
    x[row] = arranged + row * ArrangedOf<uint16_t>::bytes(product.in) / int64_t{sizeof(int16_t)};
  Blocks<kRows, kWide> some;
  some.output_bytes = product.in / 2;
  for (some.first = 0; some.first < blocks; some.first += kLanes) {
    const int64_t index = output * blocks + some.first;
    some.count = smaller_of(kLanes, blocks - some.first);
    some.codes = product.weight.codes + index * (kBlock / 2);
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
#endif

template <int kRows, int kWide, typename X, typename Y>
SNUG_INLINE void write_outputs(const Nf4Product& product, int64_t output) {
  Float16Lanes sums[kRows][kWide] = {};
  multiply_outputs<kRows>(product, static_cast<const Arranged<X>*>(product.x), output, sums);
  Y* y = static_cast<Y*>(product.y) + output;
  if constexpr (kWide == 1) {
    for (int row = 0; row < kRows; ++row)
      store_one(y + row * product.y_stride, reduce_add(sums[row][0]));
  } else {
    static_assert(kRows * kWide <= kSumsAtOnce);
    Float16Lanes each[kSumsAtOnce] = {};
    for (int i = 0; i < kRows * kWide; ++i) each[i] = sums[i / kWide][i % kWide];
    Y all[kSumsAtOnce];
    store(all, lane_sums(each));
    for (int row = 0; row < kRows; ++row)
      __builtin_memcpy(y + row * product.y_stride, all + row * kWide, kWide * sizeof(Y));
  }
}

template <int kRows, typename X, typename Y>
void multiply_rows(const Nf4Product& product) {
  constexpr int kWide = kOutputs<Arranged<X>, kRows>;
  int64_t output = product.begin;
  for (; output + kWide <= product.end; output += kWide)
    write_outputs<kRows, kWide, X, Y>(product, output);
  if constexpr (kWide > 1)
    for (; output < product.end; ++output) write_outputs<kRows, 1, X, Y>(product, output);
}

// Rows that are multiplied at once: their sums fit in registers next to a block's values.
template <typename X>
constexpr int kTogether = 4;
// The most rows in a product.
template <typename X>
constexpr int64_t kMostRows = 4;
#if defined(__AVX512VNNI__)
template <>
constexpr int kTogether<uint16_t> = 8;
template <>
constexpr int64_t kMostRows<uint16_t> = 16;
#endif
// Outputs whose codes stay in the first-level cache from one group of rows to the next.
constexpr int64_t kOutputsPerGroup = 8;

template <typename X, typename Y, int kRows = kTogether<X>>
void multiply_group(const Nf4Product& product) {
  if constexpr (kRows > 1)
    if (product.rows < kRows) return multiply_group<X, Y, kRows - 1>(product);
  multiply_rows<kRows, X, Y>(product);
}

// Divides the rows into groups of about equal size.
template <typename X, typename Y>
void multiply(const Nf4Product& product) {
  if (product.rows <= kTogether<X>) return multiply_group<X, Y>(product);
  const int64_t groups = (product.rows + kTogether<X> - 1) / kTogether<X>;
  const int64_t rows = (product.rows + groups - 1) / groups;
  Nf4Product part = product;
  for (int64_t output = product.begin; output < product.end; output = part.end) {
    part.begin = output;
    part.end = smaller_of(product.end, output + kOutputsPerGroup);
    for (int64_t row = 0; row < product.rows; row += rows) {
      part.rows = smaller_of(rows, product.rows - row);
      part.x = static_cast<const char*>(product.x) + row * ArrangedOf<X>::bytes(product.in);
      part.y = static_cast<Y*>(product.y) + row * product.y_stride;
      multiply_group<X, Y>(part);
    }
  }
}

}  // namespace

extern const Nf4Kernels kNf4Kernels;
const Nf4Kernels kNf4Kernels = {
    .dequantize = SNUG_BY_ELEMENT(dequantize),
    .arrange_x = SNUG_BY_ELEMENT(arrange_x),
    .arranged_bytes = {ArrangedOf<float>::bytes, ArrangedOf<uint16_t>::bytes,
                       ArrangedOf<Fp16>::bytes},
    .most_rows = SNUG_BY_ELEMENT(kMostRows),
    .multiply = SNUG_BY_TWO_ELEMENTS(multiply)};

}  // namespace snug::backends::cpu::SNUG_ISA
