// Products with a thin side, as those of adapters: bound by reading the large factor once. A block
// takes 64 rows (or columns) of it and a part of the sum; afterwards the parts are added in order.
#pragma once

#include <cuda_runtime_api.h>

#include "backends/cuda/kernels/device_rows.h"

namespace snug::backends::cuda {

// result = alpha * sum over depth of large[wide, depth] * small[depth, thin], plus beta * addend.
// Both factors have the same 16-bit format; their rows begin at multiples of 16 bytes and have a
// multiple of 8 elements.
struct ThinRun {
  int64_t wide = 0;
  int64_t depth = 0;
  int64_t thin = 0;  // at most kMaxThin, a multiple of 8
  DeviceRows large;  // (wide, depth), or (depth, wide) if `across`
  DeviceRows small;  // (thin, depth), or (depth, thin) if `small_by_depth`, which `across` requires
  bool across = false;
  bool small_by_depth = false;
  DeviceRows addend;  // read only if beta is not 0; laid out like the result
  DeviceRows result;  // (wide, thin), or (thin, wide) if `result_by_thin`; f32 or as the factors
  bool result_by_thin = false;
  float alpha = 1.0F;
  float beta = 0.0F;
  int64_t parts = 1;              // the number of parts into which the sum is cut
  float* partial_sums = nullptr;  // (parts, wide, thin) if there are several parts
};
void multiply_thin(const ThinRun& run, cudaStream_t stream);

}  // namespace snug::backends::cuda
