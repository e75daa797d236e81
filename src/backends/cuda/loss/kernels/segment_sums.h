// Sums one number per token into one per segment, and spreads numbers of segments back to their
// tokens.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "backends/cuda/kernels/device_rows.h"

namespace snug::backends::cuda {

// bounds (segments, 2): tokens [begin, end) of each segment; an unused one is empty.
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
// values[t] = scale times the number of the token's segment, 0 outside all segments.
void spread_segments(const SpreadRun& run, cudaStream_t stream);

// y[t] = weights[t] * x[t], row by row; y may be x.
struct WeighRowsRun {
  Walk walk;  // over x
  DeviceRows x, y;
  const float* weights = nullptr;
};
void weigh_rows(const WeighRowsRun& run, cudaStream_t stream);

}  // namespace snug::backends::cuda
