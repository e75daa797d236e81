// Moves rows from tokens to experts and back: places[t, i] is the row of token t for its i-th
// expert.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "backends/cuda/kernels/device_rows.h"

namespace snug::backends::cuda {

// y[places[t, i]] = x[t].
struct PermuteRun {
  Walk walk;  // over x
  DeviceRows x, y;
  const int32_t* places = nullptr;
  int64_t k = 0;
};
void permute_rows(const PermuteRun& run, cudaStream_t stream);

// y[t] = the sum of x[places[t, i]], in the order of i, in f32.
struct CombineRun {
  Walk walk;  // over y
  DeviceRows x, y;
  const int32_t* places = nullptr;
  int64_t k = 0;
};
void combine_rows(const CombineRun& run, cudaStream_t stream);

// y[places[i]] = weights[i] * x[places[i]], over all rows.
struct ScaleRowsRun {
  Walk walk;  // over x
  DeviceRows x, y;
  const float* weights = nullptr;
  const int32_t* places = nullptr;
};
void scale_rows(const ScaleRowsRun& run, cudaStream_t stream);

// dx[places[i]] = weights[i] * dy[places[i]], and dweights[i] = the dot product of the rows
// places[i] of dy and x. dx may be dy.
struct ScaleRowsGradRun {
  Walk walk;  // over x
  DeviceRows dy, x, dx;
  const float* weights = nullptr;
  float* dweights = nullptr;
  const int32_t* places = nullptr;
};
void scale_rows_grad(const ScaleRowsGradRun& run, cudaStream_t stream);

}  // namespace snug::backends::cuda
