// The factor by which gelu multiplies x, and its slope, in both forms; for kernel files only.
#pragma once

#include "backends/cpu/kernels/lanes.h"

namespace snug::backends::cpu::SNUG_ISA {

// gelu(x) = x * factor, gelu'(x) = factor + x * slope.
struct GeluGate {
  Float16Lanes factor, slope;
};

SNUG_INLINE Float16Lanes magnitude(Float16Lanes x) { return select(x < Float16Lanes{}, -x, x); }

// The normal distribution function Phi and its density. With a = |x|, Phi(-a) = exp(-a^2 / 2) t
// P(t) where t = 1 / (1 + 0.35 a): P is the polynomial of degree 8 with the smallest maximal
// relative error on 0 <= a <= 13.5, 3.2e-8; exp is 0 from 13.2 on. The factor has an absolute error
// of at most 3e-7, and for x in [-4, 0], where it is small, a relative error of at most 1e-6;
// factor + x * slope has an absolute error of at most 3e-7.
struct NormalGate {
  SNUG_INLINE GeluGate at(Float16Lanes x) {
    const Float16Lanes a = minimum(splat(16.0F), magnitude(x));
    const Float16Lanes e = exp(-0.5F * a * a);
    const Float16Lanes t = reciprocal(1.0F + 0.35F * a);
    Float16Lanes p = splat(-0.0291261505F);
    p = p * t + 0.143873587F;
    p = p * t - 0.255507261F;
    p = p * t + 0.158932239F;
    p = p * t - 0.0229390636F;
    p = p * t + 0.105433702F;
    p = p * t + 0.11985226F;
    p = p * t + 0.13985911F;
    p = p * t + 0.139621571F;
    const Float16Lanes tail = e * (t * p);
    constexpr float kDensityAtZero = 0.398942280F;  // 1 / sqrt(2 pi)
    return {select(x < Float16Lanes{}, tail, 1.0F - tail), e * kDensityAtZero};
  }
};

// (1 + tanh(u)) / 2 is the sigmoid of 2 u = sqrt(8 / pi) (x + 0.044715 x^3), and with e = exp(-2
// |u|) its slope is (2 u)' e / (1 + e)^2, which avoids cancellation. For |2 u| above 16 the sigmoid
// is 0 or 1. The factor has an absolute error of at most 3e-7 and, in [-4, 0], a relative error of
// at most 2e-6; the absolute error of factor + x * slope is at most 4e-7.
struct TanhGate {
  SNUG_INLINE GeluGate at(Float16Lanes x) {
    constexpr float kLinear = 1.59576912F;  // sqrt(8 / pi)
    constexpr float kCubic = 1.59576912F * 0.044715F;
    const Float16Lanes a = minimum(splat(16.0F), magnitude(x));
    const Float16Lanes e = exp(-a * (kLinear + kCubic * a * a));
    const Float16Lanes r = reciprocal(1.0F + e);
    const Float16Lanes slope = (kLinear + 3.0F * kCubic * a * a) * (e * r * r);
    return {select(x < Float16Lanes{}, e * r, r), slope};
  }
};

}  // namespace snug::backends::cpu::SNUG_ISA
