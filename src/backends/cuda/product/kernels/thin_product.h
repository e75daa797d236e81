// Products with a thin side, as adapters have: bound by reading the large factor once. A block
// takes 64 rows (or columns) of it and a part of the sum; the parts are added in order afterwards.
#pragma once

#include <cuda_runtime_api.h>

#include "backends/cuda/kernels/device_rows.h"

namespace snug::backends::cuda {

// result = alpha * sum over depth of large[wide, depth] * small[depth, thin], plus beta * addend.
// Both factors are of one format of 16 bits, their rows at multiples of 16 bytes and a multiple of
// 8 elements long.
struct ThinRun {
  int64_t wide = 0;
  int64_t depth = 0;
  int64_t thin = 0;  // at most kMaxThin, a multiple of 8
  DeviceRows large;  // (wide, depth), or (depth, wide) if `across`
  DeviceRows small;  // (thin, depth), or (depth, thin) if `small_by_depth`, as it is if `across`
  bool across = false;
  bool small_by_depth = false;
  DeviceRows addend;  // read only where beta is not 0; as the result lies
  DeviceRows result;  // (wide, thin), or (thin, wide) if `result_by_thin`; f32 or of their
                      // format
  bool result_by_thin = false;
  float alpha = 1.0F;
  float beta = 0.0F;
  int64_t parts = 1;              // of the sum
  float* partial_sums = nullptr;  // (parts, wide, thin) where there are several
};
void multiply_thin(const ThinRun& run, cudaStream_t stream);

}  // namespace snug::backends::cuda
