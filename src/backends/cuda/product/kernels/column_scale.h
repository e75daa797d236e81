// Columns that are scaled, and norms of a weight's rows.
#pragma once

#include <cuda_runtime_api.h>

#include "backends/cuda/kernels/device_rows.h"

namespace snug::backends::cuda {

// y = x * gain, or x * gain / divisor where there is one; y may be x. `width` neighbouring columns
// have one gain.
struct ScaleColumnsRun {
  Walk walk;  // of x
  DeviceRows x, gain, divisor, y;
  int64_t width = 1;
};
void scale_columns(const ScaleColumnsRun& run, cudaStream_t stream);

// norms[row] = the norm of row `row` of w + alpha b a, or of w where a and b are not there. With
// `transposed` the columns of w take the place of its rows.
struct RowNormsRun {
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t rank = 0;  // 0: there is no a and no b
  DeviceRows w;
  DeviceRows a{};
  DeviceRows b{};
  bool transposed = false;
  float alpha = 1.0F;
  float* norms = nullptr;
};
void row_norms(const RowNormsRun& run, cudaStream_t stream);

}  // namespace snug::backends::cuda
