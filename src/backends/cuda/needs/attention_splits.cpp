#include "backends/cuda/needs/attention_splits.h"

#include <algorithm>

#include "backends/cuda/kernels/split_sizes.h"

namespace snug::backends::cuda {
namespace {

using program::Attention;

// A block has 16 KiB under way (128 lanes, eight times 16 bytes), and 18 KiB a multiprocessor hide
// the latency of an H100's memory (25 bytes a nanosecond, some 700 ns): two blocks do, and two fit
// where they keep eight heads. With four, some read while others sum.
constexpr int64_t kBlocksPerMultiprocessor = 4;
// Reads that a split should have to make, so that merging it is worth it.
constexpr int64_t kMinReads = 4;
// Splits that are added up, one after the other.
constexpr int64_t kMaxSplits = 64;

}  // namespace

SplitShape split_shape(const Attention& attention, const program::OperationView& view) {
  return {.heads = attention.heads,
          .kv_heads = attention.kv_heads,
          .head_dim = attention.head_dim,
          .q_tokens = view[Attention::kQ].shape[0],
          .k_tokens = view[Attention::kK].shape[0],
          .segments = view[Attention::kQBounds].shape[0]};
}

int64_t attention_splits(const SplitShape& shape, const Card& card) {
  if (shape.q_tokens > shape.segments || shape.k_tokens <= shape.q_tokens) return 0;
  const int64_t group = shape.heads / shape.kv_heads;
  const int64_t blocks = shape.q_tokens * shape.kv_heads * ceil_div(group, heads_of_block(group));
  const int64_t wanted =
      ceil_div(kBlocksPerMultiprocessor * card.multiprocessors, std::max<int64_t>(1, blocks));
  const int64_t keys = ceil_div(shape.k_tokens, std::max<int64_t>(1, shape.q_tokens));
  const int64_t useful = ceil_div(keys, kMinReads * keys_in_one_go(shape.head_dim));
  return std::min({wanted, useful, kMaxSplits});
}

int64_t attention_splits_bytes(const SplitShape& shape, int64_t splits) {
  return shape.q_tokens * shape.heads * splits * (shape.head_dim + 2) * int64_t{sizeof(float)};
}

}  // namespace snug::backends::cuda
