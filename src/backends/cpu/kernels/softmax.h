// Rows of a softmax over a vocabulary, in fp32 whatever the element type of the logits.
#pragma once

#include <cstdint>

namespace snug::backends::cpu {

struct SoftmaxKernels {
  // Largest of n logits, and the sum of exp(x - largest).
  void (*statistics_f32)(const float* x, int64_t n, float* largest, float* sum);
  void (*statistics_bf16)(const uint16_t* x, int64_t n, float* largest, float* sum);
  // out[i] = exp(x[i] - lse) * scale. `out` may share the bytes of x, element type aside: element i
  // of out never lies behind element i of x.
  void (*gradient_f32_f32)(const float* x, int64_t n, float lse, float scale, float* out);
  void (*gradient_f32_bf16)(const float* x, int64_t n, float lse, float scale, uint16_t* out);
  void (*gradient_bf16_bf16)(const uint16_t* x, int64_t n, float lse, float scale, uint16_t* out);
};

}  // namespace snug::backends::cpu
