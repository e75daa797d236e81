// The arithmetic of one token of a rewarded answer, the same in all backends: T is float or double.
// Constexpr, so that kernels can call it directly. What is not a number stays so.
#pragma once

#include <cmath>

namespace snug::backends {

// The gain of a token (program/kinds/loss/grpo.h) from the logarithm of its ratio and the advantage
// of its answer.
template <typename T>
struct ClippedRatio {
  T least;  // 1 - epsilon
  T most;   // 1 + epsilon_high
  T delta;  // of the ratio that is not clipped; 0: none

  constexpr T capped(T ratio) const { return delta > T{0} && ratio > delta ? delta : ratio; }
  constexpr T clipped(T ratio) const {
    if (ratio < least) return least;
    return ratio > most ? most : ratio;
  }

  constexpr T gain(T log_ratio, T advantage) const {
    const T ratio = std::exp(log_ratio);
    const T free = capped(ratio) * advantage;
    const T held = clipped(ratio) * advantage;
    return free < held ? free : held;
  }
  // The derivative of `gain` with respect to log_ratio. Where both terms are equal and the ratio is
  // within its bounds, both have the same.
  constexpr T slope(T log_ratio, T advantage) const {
    const T ratio = std::exp(log_ratio);
    const bool is_free = capped(ratio) * advantage < clipped(ratio) * advantage;
    const bool is_constant =
        is_free ? delta > T{0} && ratio > delta : ratio < least || ratio > most;
    return is_constant ? T{0} : ratio * advantage;
  }
  constexpr bool is_low(T log_ratio, T advantage) const {
    return capped(std::exp(log_ratio)) < least && advantage < T{0};
  }
  constexpr bool is_high(T log_ratio, T advantage) const {
    return capped(std::exp(log_ratio)) > most && advantage > T{0};
  }
};

// The estimate of the divergence from a reference of one token (Schulman 2020, k3), at least 0,
// from the reference's log-probability less the policy's; and its derivative with respect to the
// policy's.
template <typename T>
constexpr T token_divergence(T difference) {
  return std::expm1(difference) - difference;
}
template <typename T>
constexpr T token_divergence_slope(T difference) {
  return -std::expm1(difference);
}

}  // namespace snug::backends
