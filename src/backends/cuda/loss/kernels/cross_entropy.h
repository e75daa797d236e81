// Softmax rows and what the linear cross-entropy needs around its products: compacted rows gathered
// and scattered. A block has a row of logits. Targets below 0 carry no loss.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "backends/cuda/kernels/device_rows.h"

namespace snug::backends::cuda {

// Rows that carry loss, found on the device: row i of a chunk is token numbers[first + i], for
// first + i < *count; beyond that there is none. Without numbers, row i is token i, of `rows`.
struct TrainedRows {
  const int32_t* numbers = nullptr;
  const int32_t* count = nullptr;
  int64_t first = 0;
};

// What each token counts: one number for all, of step 0, or one for each, of step 1.
struct TokenFactors {
  const float* data = nullptr;
  int64_t step = 0;
};

struct SoftmaxRun {
  int64_t rows = 0;  // of logits
  int64_t vocab = 0;
  TrainedRows trained;
  DeviceRows logits;
  const int32_t* targets = nullptr;  // (tokens)
  TokenFactors factors;
  float* losses = nullptr;  // (tokens); null: not wanted
  float scale = 1.0F;       // of logits
  float softcap = 0.0F;     // of scaled logits; 0: none
  bool vectors = false;     // set by softmax_rows: rows may be read kVectorElements at a time
  DeviceRows
      dlogits;  // data == nullptr: not wanted; may be the bytes of logits; zero rows without loss
};
void softmax_rows(SoftmaxRun run, cudaStream_t stream);

// loss = the sum of losses times what they count, in a fixed order.
void sum_losses(const float* losses, int64_t tokens, const TokenFactors& factors, float* loss,
                cudaStream_t stream);

// Lists the tokens with a target of 0 or more in order, counts them, and sets the losses of the
// others to 0. More than `most` stop the kernel.
struct FindTrainedRun {
  const int32_t* targets = nullptr;
  int64_t tokens = 0;
  int32_t* numbers = nullptr;
  int32_t* count = nullptr;
  float* losses = nullptr;
  int64_t most = 0;
};
void find_trained_rows(const FindTrainedRun& run, cudaStream_t stream);

// Copies between a matrix by token and the rows of a chunk.
struct ChunkRowsRun {
  Walk walk;  // of the chunk
  TrainedRows trained;
  DeviceRows tokens;
  DeviceRows chunk;
};
// Rows beyond the last are zero.
void gather_chunk(const ChunkRowsRun& run, cudaStream_t stream);
// Rows beyond the last are left alone.
void scatter_chunk(const ChunkRowsRun& run, cudaStream_t stream);

}  // namespace snug::backends::cuda
