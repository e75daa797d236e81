// Keys and values in 8 bits (program/kinds/attention/attention.h, cache_write): the rule that all
// backends round by. Of the elements of one head of a row, with the largest magnitude m:
//
//   m finite and at least kMinMagnitude:  scale = m / 127, codes = x * (127 / m), rounded to
//                                           nearest, ties to even
//   m finite and less:                      scale = 0, codes = 0
//   any element not finite:                 scale = NaN, codes = 0
//
// All in f32. Constants only, so that kernels of every instruction set may include them.
#pragma once

namespace snug::backends {

inline constexpr float kLargestCode = 127.0F;
// So that 127 / m does not overflow; nothing in a network is so small and matters.
inline constexpr float kMinMagnitude = 1e-36F;

}  // namespace snug::backends
