// Which kernels compute an attention, and its scratch.
#pragma once

#include <array>
#include <cstdint>
#include <type_traits>

#include "backends/cuda/needs/card.h"
#include "backends/cuda/product/kernels/bias_sizes.h"
#include "program/ir/program.h"

namespace snug::backends::cuda {

// Whether cuDNN can compute it. Requires scores without softcap, biases or sinks, and keys that lie
// in no pages; bf16 or f16; heads of 32, 64, 96 or 128; keys for the same tokens as the queries;
// segments of a known length, and not so many that most of its blocks would find none; no empty
// segments where the library's version does not support them; compute capability 9.0 to 10.x; and
// for a gradient, that it need not be deterministic, since the library adds in any order.
bool suits_cudnn(const program::Attention& attention, const program::OperationView& view,
                 const Card& card);
bool suits_cudnn(const program::AttentionGrad& grad, const program::OperationView& view,
                 const Card& card);
// Whether Snug's own kernels on the tensor cores can compute it: 16-bit elements in rows that begin
// at multiples of 16 bytes, and heads whose tiles fit in a block's shared memory.
bool suits_tensor_cores(const program::Attention& attention, const program::OperationView& view,
                        const Card& card);
bool suits_tensor_cores(const program::AttentionGrad& grad, const program::OperationView& view,
                        const Card& card);
// Whether the operation is an attention, or its gradient, that is assigned to cuDNN.
bool is_by_cudnn(const program::OperationView& view);

// The scratch of an attention by cuDNN: offsets in bytes.
struct SegmentScratch {
  static constexpr int64_t kInPlace = -1;
  int64_t lengths = 0;
  int64_t begins = 0;
  int64_t lse = 0;
  // Where the gradient's q, k, v, dq, dk and dv (0 to 5) are copied without gaps between rows, for
  // the library to read or write. kInPlace: it uses the tensor itself.
  std::array<int64_t, 6> dense{kInPlace, kInPlace, kInPlace, kInPlace, kInPlace, kInPlace};
  int64_t library = 0;  // the library's own workspace
  int64_t library_bytes = 0;
  int64_t bytes() const { return library + library_bytes; }
};
SegmentScratch segment_scratch(const program::Attention& attention,
                               const program::OperationView& view);
SegmentScratch segment_scratch(const program::AttentionGrad& grad,
                               const program::OperationView& view);

// An upper bound for cuDNN's workspace, of versions 9.19 and 9.26 on compute capabilities 9.0 and
// 10.0: for the gradient, dq in f32, dk and dv of each query head in f32 where heads share keys,
// the dot products of d_o and o, and tables.
int64_t cudnn_workspace_bytes(bool is_gradient, int64_t segments, int64_t tokens, int64_t heads,
                              int64_t kv_heads, int64_t head_dim);

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

// The number of blocks over which the keys of a query's head are split, one or more; 0: this is not
// decoding, and the tile kernels compute it. Decoding has at most one query per segment, and a
// cache: training and prefill have more queries, or as many queries as keys.
int64_t attention_splits(const SplitShape& shape, const Card& card);

// The scratch of split attention: peaks, totals and outputs of
// backends/cuda/attention/kernels/attention_splits.h.
int64_t attention_splits_bytes(const SplitShape& shape, int64_t splits);

}  // namespace snug::backends::cuda
