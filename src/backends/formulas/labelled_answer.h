// The arithmetic of one answer that is desirable or undesirable, the same in all backends: T is
// float or double. Constexpr, so that kernels may call it as it stands.
#pragma once

#include <cstdint>

#include "backends/formulas/answer_pair.h"

namespace snug::backends {

// What the label of an answer (1 or -1) makes of its log-probabilities.
template <typename T>
struct LabelWeights {
  T beta;
  T desirable;
  T undesirable;
  T kl;  // constant

  constexpr T weight(int32_t label) const { return label > 0 ? desirable : undesirable; }
  constexpr T gain(int32_t label, T ratio) const {
    return static_cast<T>(label) * beta * (ratio - kl);
  }
  constexpr T loss(int32_t label, T ratio) const {
    return weight(label) * sigmoid_of_minus(gain(label, ratio));
  }
  // The derivative of `loss` by `ratio`.
  constexpr T slope(int32_t label, T ratio) const {
    const T x = gain(label, ratio);
    return -static_cast<T>(label) * beta * weight(label) * sigmoid_of_minus(x) *
           sigmoid_of_minus(-x);
  }
};

// The estimate of a divergence, which is none below 0, of a sum and of how many it is of.
template <typename T>
constexpr T divergence_of(T sum, T count) {
  return count > T{0} && sum > T{0} ? sum / count : T{0};
}

}  // namespace snug::backends
