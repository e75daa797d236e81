// Keys and values in 8 bits: what writes them to a cache.
#pragma once

#include <cuda_runtime_api.h>

#include "backends/cuda/kernels/device_rows.h"

namespace snug::backends::cuda {

// Row slots[t] of the cache becomes row t of x, a head at a time (backends/formulas/key_codes.h); a
// negative slot is skipped.
struct KeyCodesRun {
  DeviceRows x;
  int64_t rows = 0;  // of x
  int32_t heads = 0;
  int32_t head_dim = 0;
  const int32_t* slots = nullptr;
  int64_t cache_rows = 0;
  int8_t* codes = nullptr;
  int64_t stride = 0;        // elements from one row of codes to the next
  float* scales = nullptr;   // (heads, cache_rows)
  int64_t scale_stride = 0;  // elements from one head to the next
};
void write_key_codes(const KeyCodesRun& run, cudaStream_t stream);

}  // namespace snug::backends::cuda
