// The gradient of a norm's weight, computed in the same pass over rows as dx: one sum per block of
// rows, then sum_rows of these. The bits depend only on the shape.
#pragma once

#include "backends/cuda/kernels/device_rows.h"

namespace snug::backends::cuda {

struct NormWeightGrad {
  float* partials = nullptr;         // (norm_blocks, columns)
  float* column_partials = nullptr;  // column_sums_bytes of scratch for adding them up
  DeviceRows dw;                     // (columns)
  bool accumulate = false;           // adds to dw
};

}  // namespace snug::backends::cuda
