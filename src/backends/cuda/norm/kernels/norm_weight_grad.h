// The gradient of a norm's weight, which the pass over rows that makes dx makes too: a sum for each
// block of rows, then sum_rows of those. Bits depend on the shape alone.
#pragma once

#include "backends/cuda/kernels/device_rows.h"

namespace snug::backends::cuda {

struct NormWeightGrad {
  float* partials = nullptr;         // (norm_blocks, columns)
  float* column_partials = nullptr;  // column_sums_bytes of those
  DeviceRows dw;                     // (columns)
  bool accumulate = false;           // dw += the sum
};

}  // namespace snug::backends::cuda
