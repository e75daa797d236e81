// The largest elements of f32 rows, with their columns.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "backends/cuda/kernels/sizes.h"

namespace snug::backends::cuda {

struct TopKRun {
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t k = 0;
  const float* x = nullptr;  // (rows, columns)
  float* values = nullptr;   // (rows, k)
  int32_t* ids = nullptr;    // (rows, k)
  uint64_t* kept = nullptr;  // scratch (rows, blocks, k): top_k_bytes
};
void top_k(const TopKRun& run, cudaStream_t stream);

}  // namespace snug::backends::cuda
