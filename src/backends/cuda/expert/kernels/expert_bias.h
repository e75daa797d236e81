// A bias for each expert, which is added to the expert's rows, and its gradient. Bounds give the
// rows of each expert; places[t, i] is the row of token t for its i-th expert.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "backends/cuda/kernels/device_rows.h"

namespace snug::backends::cuda {

// y = x + the bias of the row's expert; with weights the bias is multiplied by weights[i] in row
// places[i]. y may be x.
struct AddExpertBiasRun {
  Walk walk;  // over x
  DeviceRows x, bias, y;
  const int32_t* bounds = nullptr;
  int64_t experts = 0;
  const float* weights = nullptr;
  const int32_t* places = nullptr;
};
void add_expert_bias(const AddExpertBiasRun& run, cudaStream_t stream);

// dbias = the sum of each expert's rows, multiplied by their weights if there are weights: `by_row`
// is scratch with one weight per row.
struct ExpertBiasGradRun {
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t experts = 0;
  DeviceRows dy, dbias;
  const int32_t* bounds = nullptr;
  const float* weights = nullptr;
  const int32_t* places = nullptr;
  float* by_row = nullptr;
};
void expert_bias_grad(const ExpertBiasGradRun& run, cudaStream_t stream);

// dweights[i] = the dot product of row places[i] of dy and the bias of its expert.
struct ExpertBiasWeightsGradRun {
  Walk walk;  // over dy
  DeviceRows dy, bias;
  const int32_t* bounds = nullptr;
  int64_t experts = 0;
  const int32_t* places = nullptr;
  float* dweights = nullptr;
};
void expert_bias_weights_grad(const ExpertBiasWeightsGradRun& run, cudaStream_t stream);

}  // namespace snug::backends::cuda
