// Rows of a softmax over a vocabulary, in fp32 whatever the element type of the logits.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/element.h"

namespace snug::backends::cpu {

struct SoftmaxKernels {
  // Largest of n logits, and the sum of exp(x - largest).
  void (*statistics[kElements])(const void* x, int64_t n, float* largest, float* sum);
  // y[i] = exp(x[i] - lse) * scale. y may begin where x begins: no element of y then lies behind
  // its x, unless y is f32 and x bf16.
  void (*gradient[kElements][kElements])(const void* x, int64_t n, float lse, float scale, void* y);
};

}  // namespace snug::backends::cpu
