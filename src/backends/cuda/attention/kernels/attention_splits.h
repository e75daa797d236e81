// Attention of few queries over long caches (decoding). The keys that a query sees are split over
// several blocks; each reads its keys once for all heads that share them and writes its partial
// sums to scratch, and the last block of a query and its heads that finishes adds these up, in the
// order of the splits. The number of blocks depends on shapes, never
// on values, and all sums have a fixed order.
#pragma once

#include <cuda_runtime_api.h>

#include "backends/cuda/attention/kernels/attention.h"
#include "backends/cuda/attention/kernels/split_sizes.h"

namespace snug::backends::cuda {

struct AttentionSplitsRun {
  RangesRun segments;  // its ranges are not used
  int32_t splits = 1;
  bool vectors = false;  // k and v are 16-bit, with heads that begin at multiples of 16 bytes
  // Bounds and pages may be read before the kernels ahead have ended; requires vectors.
  bool fetches_early = false;
  DeviceRows q, k, v, o;
  float* lse = nullptr;          // (heads, q_tokens)
  DeviceRows sinks;              // (heads); data is null if there are none
  KeyScales k_scales, v_scales;  // of k and v in 8 bits, as of AttentionRun
  // Scratch, for each query's head and each split: the largest score, the sum of the weights
  // relative to it, and the weighted sum of values.
  float* peaks = nullptr;    // (q_tokens, heads, splits)
  float* totals = nullptr;   // (q_tokens, heads, splits)
  float* outputs = nullptr;  // (q_tokens, heads, splits, head_dim)
  // Counts the blocks of a query and its heads that have finished, if there are several splits;
  // zeros before and after.
  uint32_t* finished = nullptr;  // (q_tokens, parts of heads)
};
void attention_splits(const AttentionSplitsRun& run, cudaStream_t stream);

}  // namespace snug::backends::cuda
