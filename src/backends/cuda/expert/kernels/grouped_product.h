// Products of each expert's rows with its own matrix. The number of rows is read on the device: the
// grid is large enough for any bounds, and blocks without rows end at once.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "backends/cuda/kernels/device_rows.h"

namespace snug::backends::cuda {

// c[r] = a[r] op(b[e]) for the expert e that has row r. On tensor cores a and b must have the same
// 16-bit format, k and n must be multiples of 8, and rows must begin at multiples of 16 bytes.
struct GroupedRun {
  int64_t rows = 0;
  int64_t experts = 0;
  int64_t k = 0;
  int64_t n = 0;
  DeviceRows a;  // (rows, k)
  DeviceRows b;  // (experts, k, n), or (experts, n, k) if `transpose_b`
  DeviceRows c;  // (rows, n), f32 or in the format of the factors
  bool transpose_b = false;
  const int32_t* bounds = nullptr;  // (experts, 2)
  bool tensor_cores = false;
};
void multiply_grouped(const GroupedRun& run, cudaStream_t stream);

// c[e] = [c[e] +] the transpose of expert e's rows of a, times its rows of b. On tensor cores the
// same requirements hold for m and n.
struct GroupedGradRun {
  int64_t experts = 0;
  int64_t m = 0;
  int64_t n = 0;
  DeviceRows a;  // (rows, m)
  DeviceRows b;  // (rows, n)
  DeviceRows c;  // (experts, m, n), f32 or in the format of the factors
  bool accumulate = false;
  const int32_t* bounds = nullptr;
  bool tensor_cores = false;
};
void multiply_grouped_grad(const GroupedGradRun& run, cudaStream_t stream);

}  // namespace snug::backends::cuda
