// Products of a few rows with a weight (out, in), for decoding: one warp per output reads its row
// of the weight once, for all rows of x.
#pragma once

#include <cuda_runtime_api.h>

#include "backends/cuda/kernels/device_rows.h"
#include "backends/cuda/kernels/sizes.h"
#include "backends/cuda/product/kernels/nf4.h"

namespace snug::backends::cuda {

// y = alpha x weight^T (+ addend).
struct FewRowsRun {
  Walk inputs;  // over x: its rows, at most kFewRows, and the inputs in a row
  int64_t outputs = 0;
  DeviceRows x, weight;
  DeviceRows addend;  // data is null if there is none
  DeviceRows y;
  float alpha = 1.0F;
};
void multiply_few_rows(const FewRowsRun& run, cudaStream_t stream);

// y = x weight^T (+ addend). The number of inputs must be a multiple of 64.
struct FewRowsNf4Run {
  Walk inputs;
  int64_t outputs = 0;
  DeviceRows x;
  Nf4Weight weight;
  DeviceRows addend;  // data is null if there is none
  DeviceRows y;
};
void multiply_few_rows_nf4(const FewRowsNf4Run& run, cudaStream_t stream);

}  // namespace snug::backends::cuda
