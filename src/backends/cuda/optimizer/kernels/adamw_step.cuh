// The values that all elements of a tensor share in one step of AdamW, computed by one thread of
// each block from the scalars on the device.
#pragma once

#include <type_traits>

#include "backends/cuda/device/device.cuh"
#include "backends/cuda/optimizer/kernels/optimizer.h"
#include "backends/formulas/adamw_factors.h"
#include "backends/formulas/random_bits.h"

namespace snug::backends::cuda {

struct AdamWStep {
  float factor;
  AdamWFactors plain;
  AdamW8bitFactors coded;
  base::PhiloxKey key;
};
static_assert(std::is_trivially_default_constructible_v<AdamWStep>);

// The whole block must call it.
__device__ inline const AdamWStep& share_step(const AdamWConstants& constants,
                                              const AdamWTensor& tensor) {
  __shared__ AdamWStep step;
  if (threadIdx.x == 0) {
    const AdamWScalars& scalars = constants.scalars;
    const int32_t count = *scalars.step;
    const AdamWRates rates{*scalars.learning_rate, tensor.weight_decay, constants.beta1,
                           constants.beta2,        constants.epsilon,   count};
    step.factor = *scalars.factor;
    step.plain = adamw_factors(rates);
    step.coded = adamw_8bit_factors(rates, sqrt(adamw_correction(constants.beta2, count)));
    step.key = stream_key({constants.seed, tensor.site, count, 0}, RandomPurpose::rounding);
  }
  __syncthreads();
  return step;
}

}  // namespace snug::backends::cuda
