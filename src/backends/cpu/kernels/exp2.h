// 2^x for the softmax of attention, for kernel files only.
#pragma once

#include "backends/cpu/kernels/lanes.h"

namespace snug::backends::cpu::SNUG_ISA {

constexpr float kLog2OfE = 1.44269504F;
constexpr float kLogOf2 = 0.693147181F;

// 2^x for x up to 126, with a relative error of at most 2e-7; below -126 it stays at 2^-126, NaN
// stays NaN. x = n + f with |f| <= 1/2; 2^f is approximated by the polynomial through the six
// Chebyshev nodes.
SNUG_INLINE Float16Lanes exp2(Float16Lanes x) {
  const Float16Lanes clamped = maximum(splat(-126.0F), x);
  const Float16Lanes shifted = clamped + 12582912.0F;  // rounds to an integer: 1.5 * 2^23 is added
  const Float16Lanes f = clamped - (shifted - 12582912.0F);
  Float16Lanes p = f * 1.33908634e-3F + 9.67603192e-3F;
  p = p * f + 5.55035711e-2F;
  p = p * f + 0.240221075F;
  p = p * f + 0.693147188F;
  p = p * f + 1.0F;
  return times_power_of_two(p, shifted);
}

// 2^x where the result becomes a weight of type Compute. For bf16 the relative error is at most
// 3e-6, a fraction of the rounding error: there 2^f for f in [0, 1) is the minimax polynomial of
// degree 4.
template <typename Compute>
SNUG_INLINE Float16Lanes exp2_of_weight(Float16Lanes x) {
#if defined(__AVX512F__)
  if constexpr (sizeof(Compute) == 2) {
    constexpr int kFraction = 0x01;  // x - floor(x)
    const __m512 clamped = reinterpret_cast<__m512>(maximum(splat(-126.0F), x));
    const auto f = lanes_as<Float16Lanes>(_mm512_maskz_reduce_ps(0xffff, clamped, kFraction));
    Float16Lanes p = f * 1.35341681e-2F + 5.20114603e-2F;
    p = p * f + 0.241442757F;
    p = p * f + 0.693003834F;
    p = p * f + 1.00000259F;
    return lanes_as<Float16Lanes>(
        _mm512_maskz_scalef_ps(0xffff, reinterpret_cast<__m512>(p), clamped));
  }
#endif
  return exp2(x);
}

}  // namespace snug::backends::cpu::SNUG_ISA
