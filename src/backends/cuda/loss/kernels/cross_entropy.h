// Softmax over rows, and the work around the products of a linear cross-entropy: gathering rows
// that carry loss and scattering them. One block processes a row of logits. Targets below 0 carry
// no loss.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "backends/cuda/kernels/device_rows.h"

namespace snug::backends::cuda {

// The rows that carry loss, found on the device: row i of a chunk is token numbers[first + i] while
// first + i < *count; further rows do not exist. Without numbers, row i is token i, of `rows`
// tokens.
struct TrainedRows {
  const int32_t* numbers = nullptr;
  const int32_t* count = nullptr;
  int64_t first = 0;
};

// The weight of each token: one number for all (step 0), or one per token (step 1).
struct TokenFactors {
  const float* data = nullptr;
  int64_t step = 0;
};

struct SoftmaxRun {
  int64_t rows = 0;  // the number of rows of logits
  int64_t vocab = 0;
  TrainedRows trained;
  DeviceRows logits;
  const int32_t* targets = nullptr;  // (tokens)
  TokenFactors factors;
  float* losses = nullptr;  // (tokens); null if not wanted
  float scale = 1.0F;       // multiplies the logits
  float softcap = 0.0F;     // applied to scaled logits; 0 means none
  float smoothing = 0.0F;   // the share of the loss that is the mean over the vocabulary
  bool vectors = false;     // set by softmax_rows: rows can be read kVectorElements at a time
  DeviceRows dlogits;  // data may be null; may share memory with logits; rows without loss are 0
};
void softmax_rows(SoftmaxRun run, cudaStream_t stream);

// loss = the sum of losses times their tokens' weights, in a fixed order.
void sum_losses(const float* losses, int64_t tokens, const TokenFactors& factors, float* loss,
                cudaStream_t stream);

// Lists the tokens with a target of 0 or more in order, counts them, and sets the losses of the
// others to 0. If there are more than `most`, the kernel traps.
struct FindTrainedRun {
  const int32_t* targets = nullptr;
  int64_t tokens = 0;
  int32_t* numbers = nullptr;
  int32_t* count = nullptr;
  float* losses = nullptr;
  int64_t most = 0;
};
void find_trained_rows(const FindTrainedRun& run, cudaStream_t stream);

// Copies between a matrix indexed by token and the rows of a chunk.
struct ChunkRowsRun {
  Walk walk;  // over the chunk
  TrainedRows trained;
  DeviceRows tokens;
  DeviceRows chunk;
};
// Sets rows beyond the last to zero.
void gather_chunk(const ChunkRowsRun& run, cudaStream_t stream);
// Does not write rows beyond the last.
void scatter_chunk(const ChunkRowsRun& run, cudaStream_t stream);

}  // namespace snug::backends::cuda
