// Sums over the rows of a matrix; sizes.h gives the size of their scratch.
#pragma once

#include <cuda_runtime_api.h>

#include "backends/cuda/kernels/device_rows.h"
#include "backends/cuda/kernels/sizes.h"

namespace snug::backends::cuda {

struct ColumnSumsRun {
  int64_t rows = 0;
  int64_t columns = 0;
  float* partials = nullptr;  // scratch of column_sums_bytes
  DeviceRows y;               // (columns / width)
  bool accumulate = false;
  int64_t width = 1;  // adjacent columns that share a sum
};
// Sums the elements of x (rows, columns).
void sum_rows(const DeviceRows& x, const ColumnSumsRun& run, cudaStream_t stream);

// Products of dy and x; each sum is divided by its divisor, if there is one.
struct ColumnProducts {
  DeviceRows dy, x, divisor;
};
void sum_products(const ColumnProducts& products, const ColumnSumsRun& run, cudaStream_t stream);

}  // namespace snug::backends::cuda
