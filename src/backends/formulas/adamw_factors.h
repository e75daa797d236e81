// The values that all elements of a tensor share in a step of AdamW, and the arithmetic of an
// element's step, defined only here: an update gives the same bits on CPUs with any instruction set
// and on GPUs. So no library's pow is used, and files that compute with it are compiled such that a
// product and a sum are never fused (-ffp-contract=off, --fmad=false). With g the gradient times
// the clipping factor, in f32 and in this order:
//
//   first  = first beta1 + g (1 - beta1)
//   second = second beta2 + (g g) (1 - beta2)
//   weight = weight keep - (first step_size) / (sqrt(second inverse_second_correction) + epsilon)
//
// This equals torch.optim.AdamW, except for roundings.
#pragma once

#include <cstdint>

#include "backends/formulas/decayed_share.h"

namespace snug::backends {

// The parameters of a step on one tensor; steps are counted from 1.
struct AdamWRates {
  float learning_rate = 0.0F;
  float weight_decay = 0.0F;
  float beta1 = 0.0F;
  float beta2 = 0.0F;
  float epsilon = 0.0F;
  int32_t step = 0;
};

// It has no default member initialisers, so that it can be in a GPU's shared memory.
struct AdamWFactors {
  float keep;                       // 1 - learning_rate * weight_decay
  float step_size;                  // learning_rate / (1 - beta1^step)
  float inverse_second_correction;  // 1 / (1 - beta2^step)
};

// The factors as defined by bitsandbytes: the second correction is outside the root.
struct AdamW8bitFactors {
  float keep;
  float step_size;  // learning_rate * sqrt(1 - beta2^step) / (1 - beta1^step)
  float epsilon;    // sqrt(1 - beta2^step) * epsilon
};

// beta^count by repeated squaring, with only multiplications.
constexpr double whole_power(double beta, int32_t count) {
  double result = 1.0;
  for (double square = beta; count > 0; count /= 2, square *= square)
    if (count % 2 == 1) result *= square;
  return result;
}

constexpr double adamw_correction(float beta, int32_t step) {
  return 1.0 - whole_power(static_cast<double>(beta), step);
}

constexpr float adamw_keep(const AdamWRates& rates) {
  return decayed_share(rates.learning_rate, rates.weight_decay);
}

constexpr AdamWFactors adamw_factors(const AdamWRates& rates) {
  return {.keep = adamw_keep(rates),
          .step_size = static_cast<float>(static_cast<double>(rates.learning_rate) /
                                          adamw_correction(rates.beta1, rates.step)),
          .inverse_second_correction =
              static_cast<float>(1.0 / adamw_correction(rates.beta2, rates.step))};
}

// `root` is the square root of adamw_correction(beta2, step), since the standard has no constexpr
// square root.
constexpr AdamW8bitFactors adamw_8bit_factors(const AdamWRates& rates, double root) {
  return {.keep = adamw_keep(rates),
          .step_size = static_cast<float>(static_cast<double>(rates.learning_rate) * root /
                                          adamw_correction(rates.beta1, rates.step)),
          .epsilon = static_cast<float>(root * static_cast<double>(rates.epsilon))};
}

}  // namespace snug::backends
