// Which attention is decoding, and over how many blocks its keys are spread.
#pragma once

#include <cstdint>

#include "backends/cuda/needs/card.h"
#include "program/program.h"

namespace snug::backends::cuda {

// What the choice is made of: shapes alone.
struct SplitShape {
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  int64_t q_tokens = 0;
  int64_t k_tokens = 0;
  int64_t segments = 0;  // that there is room for
};
SplitShape split_shape(const program::Attention& attention, const program::OperationView& view);

// Blocks among which the keys of a query's head are split, one or more; 0: not decoding, the
// tile kernels take it. Decoding has at most one query per segment, and a cache: training and the
// prefill have more queries, or as many keys.
int64_t attention_splits(const SplitShape& shape, const Card& card);

// Their scratch: peaks, totals and outputs of kernels/attention_splits.h.
int64_t attention_splits_bytes(const SplitShape& shape, int64_t splits);

}  // namespace snug::backends::cuda
