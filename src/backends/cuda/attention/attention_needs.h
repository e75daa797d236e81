// Which kernels compute an attention, and its scratch.
#pragma once

#include <cstdint>
#include <type_traits>

#include "backends/cuda/needs/card.h"
#include "backends/cuda/product/kernels/bias_sizes.h"
#include "program/ir/program.h"

namespace snug::backends::cuda {

// Whether Snug's own kernels on the tensor cores can compute it: 16-bit elements in rows that begin
// at multiples of 16 bytes, and heads whose tiles fit in a block's shared memory.
bool suits_tensor_cores(const program::Attention& attention, const program::OperationView& view,
                        const Card& card);
bool suits_tensor_cores(const program::AttentionGrad& grad, const program::OperationView& view,
                        const Card& card);
// With pages, the numbers that kernels give to the keys of all segments; otherwise the rows of k.
int64_t key_numbers(const program::Attention& attention, int64_t segments, int64_t most_keys);
// The ranges of keys of each query; those of queries of each key, or with pages the keys' rows.
int64_t key_ranges_bytes(const program::Attention& attention, int64_t q_tokens,
                         int64_t key_numbers);

// The number of buckets for one direction, of a relative position bias with `rows` rows.
template <typename Attributes>
int64_t buckets_of_direction(const Attributes& attention, int64_t rows) {
  return rows / (attention.causal ? 1 : 2);
}

// The scratch of Snug's own kernels for a relative position bias with `rows` rows; zero bytes
// without a bias.
template <typename Attributes>
BiasScratch bias_scratch_of(const Attributes& attention, int64_t rows, int64_t q_tokens,
                            int64_t k_tokens) {
  if (!attention.relative_bias) return {};
  int64_t sums = 0;
  if constexpr (std::is_same_v<Attributes, program::AttentionGrad>)
    if (attention.bias_gradient)
      sums = bias_blocks(q_tokens, attention.head_dim, is_on_tensor_cores(attention)) *
             attention.heads * rows;
  return bias_scratch(buckets_of_direction(attention, rows), q_tokens, attention.heads,
                      bias_reach(attention.max_distance, q_tokens, k_tokens), sums);
}

// For decoding: the shapes that decide over how many blocks the keys of an attention are split.
struct SplitShape {
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  int64_t q_tokens = 0;
  int64_t k_tokens = 0;  // that all segments can have together
  int64_t segments = 0;  // the largest number of segments
};
SplitShape split_shape(const program::Attention& attention, const program::OperationView& view);

// The blocks that read one split, of all queries and heads.
int64_t blocks_of_split(const SplitShape& shape);

// The number of blocks over which the keys of a query's head are split, one or more; 0: this is not
// decoding, and the tile kernels compute it. Decoding has at most one query per segment, and a
// cache: training and prefill have more queries, or as many queries as keys.
int64_t attention_splits(const SplitShape& shape, const Card& card);

// The scratch of split attention: peaks, totals and outputs of
// backends/cuda/attention/kernels/attention_splits.h.
int64_t attention_splits_bytes(const SplitShape& shape, int64_t splits);

}  // namespace snug::backends::cuda
