// A byte holds two codes: that of an even element in its upper four bits, that of the next element
// in its lower four. With sixteen bytes widened to sixteen lanes, a shift gives the even codes, and
// the odd ones need none: a lookup uses the low four bits. The values of the 16 codes are one
// vector, which is multiplied by a block's absmax to get the block's table. Compiled without
// contraction: a nested scale is a product and a sum, each rounded.
#include "backends/cpu/product/kernels/nf4.h"

#include <type_traits>

#include "backends/cpu/kernels/element_table.h"
#include "backends/cpu/kernels/lane_sums.h"
#include "backends/cpu/kernels/vector.h"
#include "backends/cpu/product/kernels/nf4_fixed.h"
#include "backends/cpu/product/kernels/nf4_pairs.h"

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

#if defined(SNUG_NF4_FIXED)
template <>
struct ArrangedOf<uint16_t> {
  using Type = int16_t;
  static int64_t bytes(int64_t in) { return fixed_bytes(in); }
};
template <>
void arrange_x<uint16_t>(const void* from, void* to, int64_t in) {
  arrange_fixed(static_cast<const uint16_t*>(from), static_cast<int16_t*>(to), in);
}
template <int kRows>
constexpr int kOutputs<int16_t, kRows> = kFixedOutputs<kRows>;
template <int kRows, int kWide>
SNUG_INLINE void multiply_outputs(const Nf4Product& product, const int16_t* x, int64_t output,
                                  Float16Lanes (&sums)[kRows][kWide]) {
  multiply_fixed<kRows>(product, x, output, sums);
}
#elif defined(SNUG_NF4_PAIRS)
template <>
struct ArrangedOf<uint16_t> {
  using Type = uint16_t;
  static int64_t bytes(int64_t in) { return in * int64_t{sizeof(uint16_t)}; }
};
template <>
void arrange_x<uint16_t>(const void* from, void* to, int64_t in) {
  arrange_pairs(static_cast<const uint16_t*>(from), static_cast<uint16_t*>(to), in);
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
#if defined(SNUG_NF4_FIXED)
template <>
constexpr int kTogether<uint16_t> = 8;
template <>
constexpr int64_t kMostRows<uint16_t> = 16;
#elif defined(SNUG_NF4_PAIRS)
template <>
constexpr int64_t kMostRows<uint16_t> = kPairMostRows;
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

template <typename X, typename Y>
void multiply_codes(const Nf4Product& product) {
#if defined(SNUG_NF4_PAIRS)
  if constexpr (std::is_same_v<X, uint16_t>)
    multiply_pairs<Y>(product);
  else
#endif
    multiply<X, Y>(product);
}

}  // namespace

extern const Nf4Kernels kNf4Kernels;
const Nf4Kernels kNf4Kernels = {
    .dequantize = SNUG_BY_ELEMENT(dequantize),
    .arrange_x = SNUG_BY_ELEMENT(arrange_x),
    .arranged_bytes = {ArrangedOf<float>::bytes, ArrangedOf<uint16_t>::bytes,
                       ArrangedOf<Fp16>::bytes},
    .most_rows = SNUG_BY_ELEMENT(kMostRows),
    .multiply = SNUG_BY_TWO_ELEMENTS(multiply_codes)};

}  // namespace snug::backends::cpu::SNUG_ISA
