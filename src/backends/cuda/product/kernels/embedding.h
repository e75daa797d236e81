// Rows gathered and scattered by index, and the gradient of a table.
#pragma once

#include <cuda_runtime_api.h>

#include "backends/cuda/kernels/device_rows.h"

namespace snug::backends::cuda {

// y[t] = table[ids[t]], a row, or a column of a table that lies the other way round. An id outside
// [0, known_ids) stops the device.
struct GatherRun {
  Walk walk;  // of y
  DeviceRows table, y;
  const int32_t* ids = nullptr;
  int64_t known_ids = 0;
};
void gather_rows(const GatherRun& run, cudaStream_t stream);
void gather_columns(const GatherRun& run, cudaStream_t stream);

// cache[slots[t]] = x[t]; negative slots are skipped.
struct CacheWriteRun {
  Walk walk;  // of x
  DeviceRows x, cache;
  const int32_t* slots = nullptr;
  int64_t cache_rows = 0;
};
void cache_write(const CacheWriteRun& run, cudaStream_t stream);

// table[id], a row or a column of it, += the sum of dy[t] over the tokens t with that id, in token
// order, rounded once.
struct EmbeddingGradRun {
  Walk walk;  // of dy
  DeviceRows dy, dtable;
  const int32_t* ids = nullptr;
  int64_t known_ids = 0;
  bool transposed = false;
};
void add_embedding_grad(const EmbeddingGradRun& run, cudaStream_t stream);

}  // namespace snug::backends::cuda
