// Softmax over a row of logits that come in runs, each used and dropped before the next: sums over
// earlier runs are scaled whenever a larger logit comes. A row begins with `largest` at the lowest
// float and a sum of zero.
#pragma once

#include <cstdint>

namespace snug::backends::cpu {

struct OnlineSoftmaxKernels {
  // Adds n logits to a row: y = exp(x - largest), rounded to bf16, with the new `largest`; zeros
  // follow up to a multiple of 32. y may begin where x does. Returns what earlier sums over y are
  // to be multiplied by.
  float (*add)(const float* x, int64_t n, float* largest, float* sum, uint16_t* y);
  // x *= factor.
  void (*scale)(float* x, int64_t n, float factor);
  // gradient = (x * factor - target) * scale.
  void (*gradient)(const float* x, const uint16_t* target, int64_t n,
                   const float (&factor_scale)[2], uint16_t* gradient);
};

}  // namespace snug::backends::cpu
