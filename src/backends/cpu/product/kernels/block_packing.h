// Converts blocks of rows to the layouts that block_product.h multiplies, for kernel files only.
//
//   copy_rows         rows of a tensor as they are, padded with zeros: an `a`
//   pair_rows         rows run along k:    b[row / 2][column][2]
//   transpose_units   columns run along k: b[column / 2][row][2]; applied to the result of
//                     pair_rows, the transpose as an `a`
#pragma once

#include "backends/cpu/kernels/lanes.h"
#include "backends/cpu/product/kernels/block_product.h"

namespace snug::backends::cpu::SNUG_ISA {

constexpr int64_t round_up(int64_t n, int64_t step) { return (n + step - 1) / step * step; }

// A matrix whose rows are `stride` elements apart.
template <typename Element>
struct RowBlock {
  Element* data;
  int64_t stride;
};

SNUG_INLINE void store_zeros(float* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = 0.0F;
}
SNUG_INLINE void store_zeros(uint16_t* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = 0;
}

// Copies elements inline: a call of memcpy costs more than the few cache lines of a head.
template <typename Element>
SNUG_INLINE void copy_elements(const Element* from, int64_t n, Element* to) {
  constexpr int64_t kLine = int64_t{64} / int64_t{sizeof(Element)};
  int64_t i = 0;
  for (; i + kLine <= n; i += kLine) {
    const Float16Lanes line = load(reinterpret_cast<const float*>(from + i));
    store(reinterpret_cast<float*>(to + i), line);
  }
  for (; i < n; ++i) to[i] = from[i];
}

// Copies (rows, columns) of a tensor to (padded_rows, to.stride); the padding is zero.
template <typename Stored, typename Compute>
static void copy_rows(RowBlock<const Stored> from, int64_t rows, int64_t columns,
                      RowBlock<Compute> to, int64_t padded_rows) {
  for (int64_t row = 0; row < rows; ++row) {
    const Stored* source = from.data + row * from.stride;
    Compute* out = to.data + row * to.stride;
    if constexpr (sizeof(Stored) == sizeof(Compute))
      copy_elements(source, columns, out);
    else
      for_each_lanes(columns,
                     [=](int64_t i, auto part) { store(out + i, load(source + i, part), part); });
    store_zeros(out + columns, to.stride - columns);
  }
  for (int64_t row = rows; row < padded_rows; ++row)
    store_zeros(to.data + row * to.stride, to.stride);
}

// Converts (rows, columns) to (rows / 2, columns) pairs; for fp32 it copies. `to.stride` counts
// units.
SNUG_INLINE void pair_rows(RowBlock<const float> from, int64_t rows, int64_t columns,
                           RowBlock<float> to) {
  for (int64_t row = 0; row < rows; ++row)
    __builtin_memcpy(to.data + row * to.stride, from.data + row * from.stride,
                     static_cast<uint64_t>(columns) * sizeof(float));
}
SNUG_INLINE void pair_rows(RowBlock<const uint16_t> from, int64_t rows, int64_t columns,
                           RowBlock<uint16_t> to) {
  for (int64_t row = 0; row < rows; row += 2) {
    const uint16_t* even = from.data + row * from.stride;
    const uint16_t* odd = even + from.stride;
    uint16_t* out = to.data + row / 2 * to.stride * 2;
    for (int64_t i = 0; i < columns; i += kLanes) {
      const Uint16Lanes pairs = widen(load_half(even + i)) | widen(load_half(odd + i)) << 16;
      __builtin_memcpy(out + 2 * i, &pairs, sizeof pairs);
    }
  }
}

// Stores sixteen columns of two rows in the layout of pair_rows. `stride` counts units.
SNUG_INLINE void store_pairs(float* out, int64_t stride, Float16Lanes even, Float16Lanes odd) {
  store(out, even);
  store(out + stride, odd);
}
SNUG_INLINE void store_pairs(uint16_t* out, int64_t, Float16Lanes even, Float16Lanes odd) {
#if defined(__AVX512BF16__)
  constexpr uint32_t kEvenOdd = 0x00100000;  // interleaves: an even element, then an odd one
  const Uint16Lanes order =
      kEvenOdd + Uint16Lanes{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} * 0x00010001U;
  const auto halves = reinterpret_cast<__m512i>(
      _mm512_cvtne2ps_pbh(reinterpret_cast<__m512>(odd), reinterpret_cast<__m512>(even)));
  const __m512i pairs =
      _mm512_maskz_permutexvar_epi16(~__mmask32{0}, reinterpret_cast<__m512i>(order), halves);
#else
  const Uint16Lanes pairs = widen(to_bf16(even)) | widen(to_bf16(odd)) << 16;
#endif
  __builtin_memcpy(out, &pairs, sizeof pairs);
}

#if defined(__AVX512F__)

// Transposes sixteen rows of sixteen units each; strides count bytes.
SNUG_INLINE void transpose_square(const char* from, int64_t from_stride, char* to,
                                  int64_t to_stride) {
  __m512i r[16];
  __m512i t[16];
#pragma GCC unroll 16
  for (int64_t i = 0; i < 16; ++i) r[i] = _mm512_loadu_si512(from + i * from_stride);
#pragma GCC unroll 8
  for (int64_t i = 0; i < 16; i += 2) {
    t[i] = _mm512_maskz_unpacklo_epi32(0xffff, r[i], r[i + 1]);
    t[i + 1] = _mm512_maskz_unpackhi_epi32(0xffff, r[i], r[i + 1]);
  }
  // r[4 g + c]: units c, c + 4, c + 8, c + 12 of rows 4 g ... 4 g + 3.
#pragma GCC unroll 4
  for (int64_t g = 0; g < 16; g += 4) {
    r[g] = _mm512_maskz_unpacklo_epi64(0xff, t[g], t[g + 2]);
    r[g + 1] = _mm512_maskz_unpackhi_epi64(0xff, t[g], t[g + 2]);
    r[g + 2] = _mm512_maskz_unpacklo_epi64(0xff, t[g + 1], t[g + 3]);
    r[g + 3] = _mm512_maskz_unpackhi_epi64(0xff, t[g + 1], t[g + 3]);
  }
#pragma GCC unroll 4
  for (int64_t c = 0; c < 4; ++c) {
    t[c] = _mm512_maskz_shuffle_i32x4(0xffff, r[c], r[c + 4], 0x88);
    t[c + 4] = _mm512_maskz_shuffle_i32x4(0xffff, r[c], r[c + 4], 0xdd);
    t[c + 8] = _mm512_maskz_shuffle_i32x4(0xffff, r[c + 8], r[c + 12], 0x88);
    t[c + 12] = _mm512_maskz_shuffle_i32x4(0xffff, r[c + 8], r[c + 12], 0xdd);
  }
#pragma GCC unroll 4
  for (int64_t c = 0; c < 4; ++c) {
    r[c] = _mm512_maskz_shuffle_i32x4(0xffff, t[c], t[c + 8], 0x88);
    r[c + 8] = _mm512_maskz_shuffle_i32x4(0xffff, t[c], t[c + 8], 0xdd);
    r[c + 4] = _mm512_maskz_shuffle_i32x4(0xffff, t[c + 4], t[c + 12], 0x88);
    r[c + 12] = _mm512_maskz_shuffle_i32x4(0xffff, t[c + 4], t[c + 12], 0xdd);
  }
#pragma GCC unroll 16
  for (int64_t i = 0; i < 16; ++i) _mm512_storeu_si512(to + i * to_stride, r[i]);
}

#else

SNUG_INLINE void transpose_square(const char* from, int64_t from_stride, char* to,
                                  int64_t to_stride) {
  for (int64_t i = 0; i < 16; ++i)
    for (int64_t j = 0; j < 16; ++j)
      __builtin_memcpy(to + j * to_stride + i * 4, from + i * from_stride + j * 4, 4);
}

#endif

// Transposes (rows, units) to (units, rows); both numbers are multiples of 16, and strides count
// units.
template <typename Element>
static void transpose_units(RowBlock<const Element> from, int64_t rows, int64_t units,
                            RowBlock<Element> to) {
  const char* source = reinterpret_cast<const char*>(from.data);
  char* out = reinterpret_cast<char*>(to.data);
  for (int64_t i = 0; i < rows; i += 16)
    for (int64_t j = 0; j < units; j += 16)
      transpose_square(source + (i * from.stride + j) * 4, from.stride * 4,
                       out + (j * to.stride + i) * 4, to.stride * 4);
}

}  // namespace snug::backends::cpu::SNUG_ISA
