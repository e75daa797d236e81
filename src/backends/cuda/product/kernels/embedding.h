// Gathering and scattering rows by index, and the gradient of a table.
#pragma once

#include <cuda_runtime_api.h>

#include "backends/cuda/kernels/device_rows.h"

namespace snug::backends::cuda {

// y[t] = table[ids[t]]: a row, or a column of a table that is stored transposed. An id outside [0,
// known_ids) traps.
struct GatherRun {
  Walk walk;  // over y
  DeviceRows table, y;
  const int32_t* ids = nullptr;
  int64_t known_ids = 0;
};
void gather_rows(const GatherRun& run, cudaStream_t stream);
void gather_columns(const GatherRun& run, cudaStream_t stream);

// cache[slots[t]] = x[t]; negative slots are skipped.
struct CacheWriteRun {
  Walk walk;  // over x
  DeviceRows x, cache;
  const int32_t* slots = nullptr;
  int64_t cache_rows = 0;
};
void cache_write(const CacheWriteRun& run, cudaStream_t stream);

// table[id] += the sum of dy[t] over the tokens t with that id, in token order and rounded once;
// table[id] is a row, or a column of a transposed table.
struct EmbeddingGradRun {
  Walk walk;  // over dy
  DeviceRows dy, dtable;
  const int32_t* ids = nullptr;
  int64_t known_ids = 0;
  bool transposed = false;
};
void add_embedding_grad(const EmbeddingGradRun& run, cudaStream_t stream);

}  // namespace snug::backends::cuda
