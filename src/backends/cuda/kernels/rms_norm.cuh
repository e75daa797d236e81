// What both kernels with a norm share.
#pragma once

#include "backends/cuda/device.cuh"

namespace snug::backends::cuda {

// 1 / sqrt(mean of squares + epsilon).
__device__ inline float root_of(float squares, int64_t columns, float epsilon) {
  return 1.0F / sqrtf(squares / static_cast<float>(columns) + epsilon);
}

}  // namespace snug::backends::cuda
