// Sums over the lanes of several vectors at once, for kernel files: the additions are those of
// reduce_add, so the bits are its bits, but sixteen sums take three instructions each.
#pragma once

#include "backends/cpu/kernels/vector.h"

namespace snug::backends::cpu::SNUG_ISA {

constexpr int kSumsAtOnce = 16;

#if defined(__AVX512F__)

// Adds pairs of 128-bit quarters: the result's lower half holds a's sums and its upper half b's.
template <int kFirst, int kSecond>
SNUG_INLINE Float16Lanes add_quarters(Float16Lanes a, Float16Lanes b) {
  const auto x = reinterpret_cast<__m512>(a);
  const auto y = reinterpret_cast<__m512>(b);
  constexpr auto kAll = __mmask16{0xffff};
  return lanes_as<Float16Lanes>(_mm512_maskz_shuffle_f32x4(kAll, x, y, kFirst)) +
         lanes_as<Float16Lanes>(_mm512_maskz_shuffle_f32x4(kAll, x, y, kSecond));
}

// Each quarter of the result has the four lanes' sums of a vector: of x[0], x[4], x[8] and x[12].
SNUG_INLINE Float16Lanes add_to_quarters(const Float16Lanes* x) {
  constexpr int kLower = 0x44;
  constexpr int kUpper = 0xee;
  constexpr int kEven = 0x88;
  constexpr int kOdd = 0xdd;
  return add_quarters<kEven, kOdd>(add_quarters<kLower, kUpper>(x[0], x[4]),
                                   add_quarters<kLower, kUpper>(x[8], x[12]));
}

// Adds the upper pair of each quarter to the lower: of a first, then of b.
SNUG_INLINE Float16Lanes add_pairs(Float16Lanes a, Float16Lanes b) {
  const auto x = reinterpret_cast<__m512d>(a);
  const auto y = reinterpret_cast<__m512d>(b);
  constexpr auto kAll = __mmask8{0xff};
  return lanes_as<Float16Lanes>(_mm512_castpd_ps(_mm512_maskz_unpacklo_pd(kAll, x, y))) +
         lanes_as<Float16Lanes>(_mm512_castpd_ps(_mm512_maskz_unpackhi_pd(kAll, x, y)));
}

// Lane i is reduce_add(x[i]).
SNUG_INLINE Float16Lanes lane_sums(const Float16Lanes (&x)[kSumsAtOnce]) {
  constexpr int kEven = 0x88;
  constexpr int kOdd = 0xdd;
  constexpr auto kAll = __mmask16{0xffff};
  const auto first =
      reinterpret_cast<__m512>(add_pairs(add_to_quarters(x), add_to_quarters(x + 1)));
  const auto last =
      reinterpret_cast<__m512>(add_pairs(add_to_quarters(x + 2), add_to_quarters(x + 3)));
  return lanes_as<Float16Lanes>(_mm512_maskz_shuffle_ps(kAll, first, last, kEven)) +
         lanes_as<Float16Lanes>(_mm512_maskz_shuffle_ps(kAll, first, last, kOdd));
}

#else

SNUG_INLINE Float16Lanes lane_sums(const Float16Lanes (&x)[kSumsAtOnce]) {
  float sums[kSumsAtOnce];
  for (int i = 0; i < kSumsAtOnce; ++i) sums[i] = reduce_add(x[i]);
  return load(sums);
}

#endif

}  // namespace snug::backends::cpu::SNUG_ISA
