// Softmax over rows of a vocabulary, in fp32 whatever the element type of the logits.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/element.h"

namespace snug::backends::cpu {

struct CappedSoftmax {
  float lse;
  float scale;
  float cap;
};

// The softmax of a loss with smoothing: `share` is what it wants of every probability.
struct SmoothedSoftmax {
  float lse;
  float scale;
  float share;
  float cap;  // 0: logits are not capped
};

struct SoftmaxKernels {
  // The largest of n logits, and the sum of exp(x - largest).
  void (*statistics[kElements])(const void* x, int64_t n, float* largest, float* sum);
  // y[i] = exp(x[i] - lse) * scale. y may be the same address as x, unless y is f32 and x bf16:
  // then elements of y would overwrite later elements of x.
  void (*gradient[kElements][kElements])(const void* x, int64_t n, float lse, float scale, void* y);
  // The gradient with respect to z of f32 logits x = cap tanh(z / cap): it has the additional
  // factor 1 - (x / cap)^2.
  void (*capped_gradient[kElements])(const float* x, int64_t n, const CappedSoftmax& softmax,
                                     void* y);
  // The sum of n logits.
  float (*sum[kElements])(const void* x, int64_t n);
  // y[i] = (exp(x[i] - lse) - share) * scale, with the additional factor where there is a cap. y as
  // in gradient.
  void (*smoothed_gradient[kElements][kElements])(const void* x, int64_t n,
                                                  const SmoothedSoftmax& softmax, void* y);
};

}  // namespace snug::backends::cpu
