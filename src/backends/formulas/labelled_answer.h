// The arithmetic of one desirable or undesirable answer, the same in all backends: T is float or
// double. Constexpr, so that kernels can call it directly.
#pragma once

#include <cstdint>

#include "backends/formulas/answer_pair.h"

namespace snug::backends {

// The loss of an answer from its label (1 or -1) and its log-probabilities, and the loss's
// derivative.
template <typename T>
struct LabelWeights {
  T beta;
  T desirable;
  T undesirable;
  T kl;  // treated as a constant by the gradient

  constexpr T weight(int32_t label) const { return label > 0 ? desirable : undesirable; }
  constexpr T gain(int32_t label, T ratio) const {
    return static_cast<T>(label) * beta * (ratio - kl);
  }
  constexpr T loss(int32_t label, T ratio) const {
    return weight(label) * sigmoid_of_minus(gain(label, ratio));
  }
  // The derivative of `loss` with respect to `ratio`.
  constexpr T slope(int32_t label, T ratio) const {
    const T x = gain(label, ratio);
    return -static_cast<T>(label) * beta * weight(label) * sigmoid_of_minus(x) *
           sigmoid_of_minus(-x);
  }
};

// The estimate of a divergence from a sum over `count` examples, at least 0.
template <typename T>
constexpr T divergence_of(T sum, T count) {
  return count > T{0} && sum > T{0} ? sum / count : T{0};
}

}  // namespace snug::backends
