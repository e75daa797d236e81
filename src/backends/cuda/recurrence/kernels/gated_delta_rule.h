// The gated delta rule and its gradient, in fp32: a block of threads takes a head's segments chunk
// by chunk. Its matrices lie in scratch that stays in the GPU's cache.
#pragma once

#include <cuda_runtime_api.h>

#include "backends/cuda/kernels/device_rows.h"
#include "backends/cuda/recurrence/kernels/recurrence_sizes.h"

namespace snug::backends::cuda {

struct DeltaRuleRun {
  DeltaSizes sizes;
  DeviceRows q, k, v, g, beta;
  const int32_t* bounds = nullptr;
  DeviceRows o;
  // Of segments that go on with sequences: the program's operands; null where none do.
  const int32_t* slots = nullptr;  // (segments, 2)
  DeviceRows state{};              // (places, value_heads * dk * dv) f32
  float* scratch = nullptr;        // forward_floats() of each block
  int32_t* taps = nullptr;         // (tokens): scratch
};
void gated_delta_rule(const DeltaRuleRun& run, cudaStream_t stream);

struct DeltaRuleGradRun {
  DeltaRuleRun inputs;  // without o; scratch of backward_floats() of each block, and what all share
  DeviceRows d_o, dq, dk, dv, dg, dbeta;
};
void gated_delta_rule_grad(const DeltaRuleGradRun& run, cudaStream_t stream);

}  // namespace snug::backends::cuda
