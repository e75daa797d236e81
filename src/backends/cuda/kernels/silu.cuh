// The gate of a gated activation, in registers.
#pragma once

#include "backends/cuda/device.cuh"

namespace snug::backends::cuda {

__device__ inline float sigmoid(float x) { return 1.0F / (1.0F + expf(-x)); }

__device__ inline float silu_mul_of(float gate, float up) { return up * (gate * sigmoid(gate)); }

}  // namespace snug::backends::cuda
