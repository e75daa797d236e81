// Sums a number for each token into one for each segment, and spreads it back to the rows of the
// tokens.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "backends/cuda/kernels/device_rows.h"

namespace snug::backends::cuda {

// bounds (segments, 2): [begin, end) of each segment in tokens; an unused one is empty.
struct SegmentSumsRun {
  const float* values = nullptr;  // (tokens)
  const int32_t* bounds = nullptr;
  float* sums = nullptr;  // (segments)
  int64_t segments = 0;
  float scale = 1.0F;
};
// sums[s] = scale times the sum of the segment's values, in a fixed order.
void sum_segments(const SegmentSumsRun& run, cudaStream_t stream);

struct SpreadRun {
  const float* sums = nullptr;  // (segments)
  const int32_t* bounds = nullptr;
  float* values = nullptr;  // (tokens)
  int64_t segments = 0;
  int64_t tokens = 0;
  float scale = 1.0F;
};
// values[t] = scale times the number of the token's segment, 0 outside of all.
void spread_segments(const SpreadRun& run, cudaStream_t stream);

// y[t] = weights[t] * x[t], row by row; y may be x.
struct WeighRowsRun {
  Walk walk;  // of x
  DeviceRows x, y;
  const float* weights = nullptr;
};
void weigh_rows(const WeighRowsRun& run, cudaStream_t stream);

}  // namespace snug::backends::cuda
