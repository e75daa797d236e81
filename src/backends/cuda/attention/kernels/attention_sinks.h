// The gradient of an attention's sinks.
#pragma once

#include <cuda_runtime_api.h>

#include "backends/cuda/attention/kernels/attention.h"

namespace snug::backends::cuda {

struct AttentionSinksGradRun {
  AttentionShape shape;
  DeviceRows d_o, o, sinks;
  const float* lse = nullptr;  // (heads, q_tokens)
  float* delta = nullptr;      // (heads, q_tokens): scratch, the dot products of d_o and o
  DeviceRows dsinks;           // (heads)
};
void attention_sinks_grad(const AttentionSinksGradRun& run, cudaStream_t stream);

}  // namespace snug::backends::cuda
