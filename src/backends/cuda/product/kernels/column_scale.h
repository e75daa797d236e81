// Scaling of columns, and norms of a weight's rows.
#pragma once

#include <cuda_runtime_api.h>

#include "backends/cuda/kernels/device_rows.h"

namespace snug::backends::cuda {

// y = x * gain, or x * gain / divisor where there is a divisor; y may be x. `width` adjacent
// columns share a gain.
struct ScaleColumnsRun {
  Walk walk;  // over x
  DeviceRows x, gain, divisor, y;
  int64_t width = 1;
};
void scale_columns(const ScaleColumnsRun& run, cudaStream_t stream);

// norms[row] = the norm of row `row` of w + alpha b a, or of w where there are no a and b. With
// `transposed`, columns of w take the place of rows.
struct RowNormsRun {
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t rank = 0;  // 0 if there are no a and b
  DeviceRows w;
  DeviceRows a{};
  DeviceRows b{};
  bool transposed = false;
  float alpha = 1.0F;
  float* norms = nullptr;
};
void row_norms(const RowNormsRun& run, cudaStream_t stream);

}  // namespace snug::backends::cuda
