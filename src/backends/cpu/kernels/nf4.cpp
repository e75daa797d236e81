// A byte holds an even element's code above an odd one's, so sixteen bytes widened to sixteen lanes
// give the even codes by a shift and the odd ones as they are: a lookup takes the low four bits.
// The values of 16 codes are one vector; scaled by a block's absmax they are the block's own table.
// Compiled without contraction: a nested scale is a product and a sum, each rounded.
#include "backends/cpu/kernels/nf4.h"

#include "backends/cpu/kernels/vector.h"

namespace snug::backends::cpu::SNUG_ISA {
namespace {

constexpr int64_t kBlock = 64;
constexpr int64_t kNested = 256;
constexpr int64_t kPair = 2 * kLanes;  // elements of sixteen bytes
// Codes are asked for this many bytes before they are read. A block takes some thirty instructions
// for its 32 bytes, so that what a core looks ahead by itself is a few cache lines: 5 GB/s where
// memory gives 20.
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
  return reinterpret_cast<Uint16Lanes>(
      _mm512_maskz_cvtepu8_epi32(0xffff, reinterpret_cast<__m128i>(narrow)));
#else
  return __builtin_convertvector(narrow, Uint16Lanes);
#endif
}

// table[index % 16] in every lane.
SNUG_INLINE Float16Lanes look_up(Float16Lanes table, Uint16Lanes index) {
#if defined(__AVX512F__)
  return reinterpret_cast<Float16Lanes>(_mm512_maskz_permutexvar_ps(
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
SNUG_INLINE void store_one(uint16_t* out, float x) {
  uint16_t sixteen[kLanes];
  store(sixteen, splat(x));
  *out = sixteen[0];
}

// What is left of a tensor's last block.
template <typename W>
SNUG_INLINE void dequantize_tail(const uint8_t* codes, const float* table, int64_t n, W* w) {
  for (int64_t i = 0; i < n; ++i)
    store_one(w + i, i % 2 == 0 ? even(table, codes[i / 2]) : odd(table, codes[i / 2]));
}

// Sixteen bytes to 32 elements in their order.
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
  store(w, reinterpret_cast<Float16Lanes>(_mm512_permutex2var_ps(a, first, b)));
  store(w + kLanes, reinterpret_cast<Float16Lanes>(_mm512_permutex2var_ps(a, last, b)));
#else
  for (int64_t i = 0; i < kLanes; ++i) {
    w[2 * i] = high[i];
    w[2 * i + 1] = low[i];
  }
#endif
}

// The rounded value of a code is the same wherever it stands: the table is rounded, not each
// element.
SNUG_INLINE void dequantize_pair(const uint8_t* codes, Float16Lanes table, uint16_t* w) {
#if defined(__AVX512BW__)
  const Half16Lanes half = to_bf16(table);
  const __m512i both = _mm512_maskz_broadcast_i64x4(0xff, reinterpret_cast<__m256i>(half));
  // Even codes in the low halves of 32-bit lanes, odd ones in the high: the elements' order. The
  // lookup takes five bits of 16; the fifth chooses between two copies of the table.
  const Uint16Lanes bytes = widen_bytes(codes);
  const Uint16Lanes index = (bytes >> 4) | (bytes << 16);
  const __m512i found =
      _mm512_maskz_permutexvar_epi16(0xffffffffU, reinterpret_cast<__m512i>(index), both);
  __builtin_memcpy(w, &found, sizeof found);
#else
  uint16_t values[kLanes];
  store(values, table);
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

template <typename X>
void arrange_x(const void* from, float* arranged, int64_t in) {
  const X* x = static_cast<const X*>(from);
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

// kRows dot products with one output's weights: a block's sum is scaled, not its elements.
template <int kRows, typename Y>
SNUG_INLINE void multiply_output(const Nf4Product& product, int64_t output) {
  const int64_t blocks = product.in / kBlock;
  const Float16Lanes values = load(product.weight.values);
  Float16Lanes sums[kRows] = {};
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
      const float* x = product.x + row * product.in + block * kBlock;
      Float16Lanes part = w[0] * load(x);
      for (int i = 1; i < 4; ++i) part = multiply_add(w[i], load(x + i * kLanes), part);
      sums[row] = multiply_add(part, scale, sums[row]);
    }
  }
  for (int row = 0; row < kRows; ++row)
    store_one(static_cast<Y*>(product.y) + row * product.y_stride + output, reduce_add(sums[row]));
}

template <int kRows, typename Y>
void multiply_rows(const Nf4Product& product) {
  for (int64_t output = product.begin; output < product.end; ++output)
    multiply_output<kRows, Y>(product, output);
}

template <typename Y>
void multiply(const Nf4Product& product) {
  switch (product.rows) {
    case 1:
      return multiply_rows<1, Y>(product);
    case 2:
      return multiply_rows<2, Y>(product);
    case 3:
      return multiply_rows<3, Y>(product);
    default:
      return multiply_rows<4, Y>(product);
  }
}

}  // namespace

extern const Nf4Kernels kNf4Kernels;
const Nf4Kernels kNf4Kernels = {.dequantize = {dequantize<float>, dequantize<uint16_t>},
                                .arrange_x = {arrange_x<float>, arrange_x<uint16_t>},
                                .multiply = {multiply<float>, multiply<uint16_t>}};

}  // namespace snug::backends::cpu::SNUG_ISA
