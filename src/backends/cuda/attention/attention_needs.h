// Which kernels an attention takes, and its scratch.
#pragma once

#include <array>
#include <cstdint>
#include <type_traits>

#include "backends/cuda/needs/card.h"
#include "backends/cuda/product/kernels/bias_sizes.h"
#include "program/ir/program.h"

namespace snug::backends::cuda {

// Whether cuDNN can do it: scores without cap, biases or sinks, bf16 or f16, heads of 32, 64, 96 or
// 128, keys of the same tokens as the queries, segments of a known length and not so many that most
// of its blocks would find none, and none of them empty where the library's version does not take
// that, on a card of compute capability 9.0 to 10.x; a gradient where it need not be deterministic,
// for the library adds in any order.
bool suits_cudnn(const program::Attention& attention, const program::OperationView& view,
                 const Card& card);
bool suits_cudnn(const program::AttentionGrad& grad, const program::OperationView& view,
                 const Card& card);
// Whether own kernels on the tensor cores can do it: operands of 16 bits an element whose rows
// begin at multiples of 16 bytes, and heads whose tiles fit into a block's shared memory.
bool suits_tensor_cores(const program::Attention& attention, const program::OperationView& view,
                        const Card& card);
bool suits_tensor_cores(const program::AttentionGrad& grad, const program::OperationView& view,
                        const Card& card);
// Whether the operation is an attention, or its gradient, that was given to cuDNN.
bool is_by_cudnn(const program::OperationView& view);

// Scratch of an attention by cuDNN, in bytes from its beginning.
struct SegmentScratch {
  static constexpr int64_t kInPlace = -1;
  int64_t lengths = 0;
  int64_t begins = 0;
  int64_t lse = 0;
  // Where the library reads or writes the gradient's q, k, v, dq, dk and dv (0 to 5) without gaps
  // between rows, copied before or after. kInPlace: it takes the tensor itself.
  std::array<int64_t, 6> dense{kInPlace, kInPlace, kInPlace, kInPlace, kInPlace, kInPlace};
  int64_t library = 0;  // its own workspace
  int64_t library_bytes = 0;
  int64_t bytes() const { return library + library_bytes; }
};
SegmentScratch segment_scratch(const program::Attention& attention,
                               const program::OperationView& view);
SegmentScratch segment_scratch(const program::AttentionGrad& grad,
                               const program::OperationView& view);

// A bound on the workspace that cuDNN asks for, of 9.19 and 9.26 on compute capabilities 9.0 and
// 10.0: in the gradient, dq in f32, dk and dv of each query head in f32 where heads share keys, the
// dot products of d_o and o, and tables.
int64_t cudnn_workspace_bytes(bool is_gradient, int64_t segments, int64_t tokens, int64_t heads,
                              int64_t kv_heads, int64_t head_dim);

// Buckets of one direction of a bias of so many rows.
template <typename Attributes>
int64_t buckets_of_direction(const Attributes& attention, int64_t rows) {
  return rows / (attention.causal ? 1 : 2);
}

// Scratch of a bias by relative position, of so many rows, in own kernels; of no bytes without one.
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

// Decoding: over how many blocks the keys of an attention are spread. What the choice is made of:
// shapes alone.
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

// Their scratch: peaks, totals and outputs of backends/cuda/attention/kernels/attention_splits.h.
int64_t attention_splits_bytes(const SplitShape& shape, int64_t splits);

}  // namespace snug::backends::cuda
