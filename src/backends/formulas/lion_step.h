// The values that all elements of a tensor share in a step of Lion, and the arithmetic of an
// element's step, which is the same on every CPU and GPU: files that compute with it are compiled
// such that a product and a sum are never fused. With g the gradient times the clipping factor, in
// f32 and in this order:
//
//   mean   = momentum beta1 + g (1 - beta1)
//   weight = weight keep - sign(mean) learning_rate        sign(0) = 0
//   momentum = momentum beta2 + g (1 - beta2)
#pragma once

namespace snug::backends {

// It has no default member initialisers, so that it can be in a GPU's shared memory.
struct LionStep {
  float factor;  // multiplies the gradient
  float learning_rate;
  float keep;  // 1 - learning_rate * weight_decay
  float beta1;
  float beta2;
};

}  // namespace snug::backends
