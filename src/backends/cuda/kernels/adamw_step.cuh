// What all elements of a tensor share in one step of AdamW, made in double by one thread of each
// block from the scalars on the device.
#pragma once

#include "backends/cuda/device.cuh"
#include "backends/cuda/kernels/optimizer.h"
#include "backends/random_bits.h"

namespace snug::backends::cuda {

struct AdamWStep {
  float factor;
  float keep;              // 1 - rate weight_decay
  float first_correction;  // 1 - beta1^t
  float second_correction;
  float learning_rate;
  base::PhiloxKey key;
};

// Called by the whole block.
__device__ inline const AdamWStep& share_step(const AdamWConstants& constants,
                                              const AdamWTensor& tensor) {
  __shared__ AdamWStep step;
  if (threadIdx.x == 0) {
    const AdamWScalars& scalars = constants.scalars;
    const int32_t count = *scalars.step;
    const auto correction = [&](float beta) {
      return static_cast<float>(1.0 - pow(static_cast<double>(beta), static_cast<double>(count)));
    };
    step.factor = *scalars.factor;
    step.learning_rate = *scalars.learning_rate;
    step.keep = static_cast<float>(1.0 - static_cast<double>(step.learning_rate) *
                                             static_cast<double>(tensor.weight_decay));
    step.first_correction = correction(constants.beta1);
    step.second_correction = correction(constants.beta2);
    step.key = stream_key({constants.seed, tensor.site, count, 0}, RandomPurpose::rounding);
  }
  __syncthreads();
  return step;
}

}  // namespace snug::backends::cuda
