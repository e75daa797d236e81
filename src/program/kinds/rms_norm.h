// rms_norm: y = x / sqrt(mean(x^2) + epsilon) * w, statistics in fp32 (Zhang and Sennrich 2019).
#pragma once

#include "program/kinds/field.h"

namespace snug::program {

// reads: x (tokens, d), w (d). writes: y (tokens, d).
struct RmsNorm {
  float epsilon = 1e-5F;
  bool operator==(const RmsNorm&) const = default;
  static constexpr auto kFields = std::tuple{Field{"epsilon", &RmsNorm::epsilon}};
};

// reads: dy, x (tokens, d), w (d), then an addend (tokens, d) if `addend`. writes: dx (+ addend),
// and dw (d) if `weight_gradient`; with `accumulate` dw is updated instead. The reciprocal root is
// computed again from x.
struct RmsNormGrad {
  float epsilon = 1e-5F;
  bool weight_gradient = false;
  bool addend = false;
  bool accumulate = false;
  bool operator==(const RmsNormGrad&) const = default;
  static constexpr auto kFields = std::tuple{
      Field{"epsilon", &RmsNormGrad::epsilon},
      Field{"weight_gradient", &RmsNormGrad::weight_gradient},
      Field{"addend", &RmsNormGrad::addend}, Field{"accumulate", &RmsNormGrad::accumulate}};
};

}  // namespace snug::program
