// Attention of few queries over long caches (decoding). The keys that a query sees are split over
// several blocks, each of which reads them once for all heads that share them and leaves its part
// of the sums in scratch; a second kernel adds the parts up. How many blocks there are depends on
// shapes, never on values, and all sums run in a fixed order.
#pragma once

#include <cuda_runtime_api.h>

#include "backends/cuda/attention/kernels/attention.h"
#include "backends/cuda/attention/kernels/split_sizes.h"

namespace snug::backends::cuda {

struct AttentionSplitsRun {
  RangesRun segments;  // of which the ranges are not used
  int32_t splits = 1;
  bool vectors = false;  // k and v have 16 bits, and a head's row begins at a multiple of 16 bytes
  DeviceRows q, k, v, o;
  float* lse = nullptr;  // (heads, q_tokens)
  DeviceRows sinks;      // (heads); without data: none
  // Scratch, of each query's head and each split: the largest score, the sum of the weights beneath
  // it, and the values they weigh.
  float* peaks = nullptr;    // (q_tokens, heads, splits)
  float* totals = nullptr;   // (q_tokens, heads, splits)
  float* outputs = nullptr;  // (q_tokens, heads, splits, head_dim)
};
void attention_splits(const AttentionSplitsRun& run, cudaStream_t stream);

}  // namespace snug::backends::cuda
