// Softmax over a row of logits that arrive in runs, each used and dropped before the next: sums
// over earlier runs are rescaled whenever a larger logit arrives. A row starts with `largest` as
// the lowest float and a sum of zero.
#pragma once

#include <cstdint>

namespace snug::backends::cpu {

struct OnlineSoftmaxKernels {
  // Adds n logits to a row: y = exp(x - largest), rounded to bf16, with the updated `largest`,
  // followed by zeros up to a multiple of 32. y may be the same address as x. Returns the factor
  // for earlier sums over y.
  float (*add)(const float* x, int64_t n, float* largest, float* sum, uint16_t* y);
  // x *= factor.
  void (*scale)(float* x, int64_t n, float factor);
  // gradient = (x * factor - target) * scale.
  void (*gradient)(const float* x, const uint16_t* target, int64_t n,
                   const float (&factor_scale)[2], uint16_t* gradient);
};

}  // namespace snug::backends::cpu
