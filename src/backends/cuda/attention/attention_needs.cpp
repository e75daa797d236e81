#include "backends/cuda/attention/attention_needs.h"

#include <algorithm>
#include <initializer_list>
#include <type_traits>

#include "backends/cuda/attention/cudnn_needs.h"
#include "backends/cuda/attention/kernels/split_sizes.h"
#include "backends/cuda/kernels/device_rows.h"
#include "backends/cuda/kernels/sizes.h"
#include "backends/cuda/needs/kind_needs.h"
#include "backends/cuda/needs/row_stride.h"
#include "backends/cuda/product/few_rows_needs.h"
#include "program/kinds/attention/attention.h"
#include "program/kinds/attention/attention_sinks.h"

namespace snug::backends::cuda {
namespace {

using program::Attention;
using program::AttentionBy;
using program::AttentionGrad;
using program::Tensor;

// The ranges of keys and those of queries.
int64_t ranges_bytes(int64_t q_tokens, int64_t k_tokens) {
  return (q_tokens + k_tokens) * int64_t{sizeof(TokenRange)};
}

// Whether Snug's own kernels on the tensor cores can read these operands as 16-byte vectors of
// 16-bit elements.
template <typename Attributes>
bool fits_tensor_cores(const Attributes& attention, int64_t shared_bytes, const Card& card,
                       std::initializer_list<const Tensor*> operands) {
  const int64_t most_dims = attention.relative_bias ? kMaxBiasedMatrixDims : kMaxMatrixDims;
  return attention.head_dim % kVectorElements == 0 && attention.head_dim <= most_dims &&
         shared_bytes <= card.shared_bytes &&
         std::all_of(operands.begin(), operands.end(),
                     [](const Tensor* operand) { return has_narrow_vectors(*operand); });
}

// The range of distances in the gradient of a bias, for which a block keeps sums; 0 without a bias.
int64_t reach_of_sums(const AttentionGrad& grad, const OperationView& view) {
  if (!grad.bias_gradient) return 0;
  return bias_reach(grad.max_distance, view[AttentionGrad::kQ].shape[0],
                    view[AttentionGrad::kK].shape[0]);
}

// A block has 16 KiB of reads in flight (128 lanes, eight times 16 bytes), and 18 KiB per
// multiprocessor hide the memory latency of an H100 (25 bytes per nanosecond, some 700 ns): two
// blocks suffice, and two fit where each keeps eight heads. With four, some read while others sum.
constexpr int64_t kBlocksPerMultiprocessor = 4;
// The fewest reads that make a split worth the cost of merging it.
constexpr int64_t kMinReads = 4;
// The most splits, which are added up one after another.
constexpr int64_t kMaxSplits = 64;

}  // namespace

int64_t key_numbers(const Attention& attention, int64_t segments, int64_t most_keys) {
  return attention.paged ? segments * key_places(most_keys) : most_keys;
}

int64_t key_ranges_bytes(const Attention& attention, int64_t q_tokens, int64_t key_numbers) {
  if (!attention.paged) return ranges_bytes(q_tokens, key_numbers);
  return ranges_bytes(q_tokens, 0) + key_numbers * int64_t{sizeof(int32_t)};
}

SplitShape split_shape(const Attention& attention, const program::OperationView& view) {
  const int64_t segments = view[Attention::kQBounds].shape[0];
  const int64_t keys = most_keys(attention, view);
  return {.heads = attention.heads,
          .kv_heads = attention.kv_heads,
          .head_dim = attention.head_dim,
          .q_tokens = view[Attention::kQ].shape[0],
          .k_tokens = attention.paged ? segments * keys : keys,
          .segments = segments};
}

int64_t blocks_of_split(const SplitShape& shape) {
  const int64_t group = shape.heads / shape.kv_heads;
  return shape.q_tokens * shape.kv_heads * ceil_div(group, heads_of_block(group));
}

int64_t attention_splits(const SplitShape& shape, const Card& card) {
  if (shape.q_tokens > shape.segments || shape.k_tokens <= shape.q_tokens ||
      shape.head_dim > kSplitMaxHeadDim)
    return 0;
  const int64_t wanted = ceil_div(kBlocksPerMultiprocessor * card.multiprocessors,
                                  std::max<int64_t>(1, blocks_of_split(shape)));
  const int64_t keys = ceil_div(shape.k_tokens, std::max<int64_t>(1, shape.q_tokens));
  const int64_t useful = ceil_div(keys, kMinReads * keys_in_one_go(shape.head_dim));
  return std::min({wanted, useful, kMaxSplits});
}

int64_t attention_splits_bytes(const SplitShape& shape, int64_t splits) {
  return shape.q_tokens * shape.heads * splits * (shape.head_dim + 2) * int64_t{sizeof(float)};
}

// Of keys and values in 8 bits, those in pages next to queries in bf16, which has the range of the
// weights that their scales have multiplied.
bool codes_suit_tensor_cores(const Attention& attention, const OperationView& view,
                             const Card& card) {
  const int64_t scale_bytes =
      4 * int64_t{matrix_keys(matrix_dims(attention.head_dim))} * int64_t{sizeof(float)};
  const Tensor& k = view[Attention::kK];
  return attention.paged && view[Attention::kQ].dtype == base::DType::bf16 &&
         row_stride(k) % kVectorElements == 0 &&
         fits_tensor_cores(attention,
                           attention_matrix_shared_bytes(attention.head_dim) + scale_bytes, card,
                           {&view[Attention::kQ]});
}

bool suits_tensor_cores(const Attention& attention, const OperationView& view, const Card& card) {
  if (attention.quantized) return codes_suit_tensor_cores(attention, view, card);
  return fits_tensor_cores(attention, attention_matrix_shared_bytes(attention.head_dim), card,
                           {&view[Attention::kQ], &view[Attention::kK], &view[Attention::kV]});
}

bool suits_tensor_cores(const AttentionGrad& grad, const OperationView& view, const Card& card) {
  using Grad = AttentionGrad;
  const int64_t sums = grad.bias_gradient ? bias_matrix_shared_bytes(reach_of_sums(grad, view)) : 0;
  return fits_tensor_cores(grad, attention_grad_matrix_shared_bytes(grad.head_dim) + sums, card,
                           {&view[Grad::kDO], &view[Grad::kQ], &view[Grad::kK], &view[Grad::kV]});
}

namespace {

template <typename Attributes>
bool has_known_buckets(const Attributes& attention, const OperationView& view) {
  return !attention.relative_bias ||
         buckets_of_direction(attention, view[Attributes::kBias].shape[0]) <= kMaxBiasBuckets;
}

// The plain kernels run on every GPU, unless a gradient's sums by distance do not fit in shared
// memory.
static_assert(attention_shared_bytes(kMaxHeadDim) <= kLeastSharedBytes);
static_assert(attention_grad_shared_bytes(kMaxHeadDim) <= kLeastSharedBytes);

bool supports(const Attention& attention, const OperationView& view, const Card&) {
  return attention.head_dim <= kMaxHeadDim && has_known_buckets(attention, view);
}

bool supports(const AttentionGrad& grad, const OperationView& view, const Card& card) {
  const int64_t sums = grad.bias_gradient ? bias_shared_bytes(reach_of_sums(grad, view)) : 0;
  return grad.head_dim <= kMaxHeadDim && has_known_buckets(grad, view) &&
         (suits_tensor_cores(grad, view, card) ||
          attention_grad_shared_bytes(grad.head_dim) + sums <= card.shared_bytes);
}

template <typename Attributes>
AttentionBy best_kernel(const Attributes& attention, const OperationView& view, const Card& card) {
  if (suits_cudnn(attention, view, card)) return AttentionBy::library;
  return suits_tensor_cores(attention, view, card) ? AttentionBy::tensor_cores : AttentionBy::plain;
}

Attention decide(const Attention& attention, const OperationView& view, const Card& card) {
  Attention decided = attention;
  decided.kernel.splits = attention_splits(split_shape(attention, view), card);
  if (decided.kernel.splits == 0) decided.kernel.by = best_kernel(attention, view, card);
  return decided;
}

AttentionGrad decide(const AttentionGrad& grad, const OperationView& view, const Card& card) {
  AttentionGrad decided = grad;
  decided.kernel.by = best_kernel(grad, view, card);
  if (is_by_library(decided)) decide_copies(view, decided);
  return decided;
}

// The scratch of a relative position bias, which comes after everything else.
template <typename Attributes>
int64_t bias_bytes(const Attributes& attention, const OperationView& view) {
  if (!attention.relative_bias) return 0;
  return bias_scratch_of(attention, view[Attributes::kBias].shape[0], view[Attributes::kQ].shape[0],
                         most_keys(attention, view))
      .bytes;
}

int64_t workspace_bytes(const Attention& attention, const OperationView& view, const Card&) {
  if (attention.kernel.splits > 0)
    return attention_splits_bytes(split_shape(attention, view), attention.kernel.splits) +
           bias_bytes(attention, view);
  if (is_by_library(attention)) return segment_scratch(attention, view).bytes();
  const int64_t numbers =
      key_numbers(attention, view[Attention::kQBounds].shape[0], most_keys(attention, view));
  return key_ranges_bytes(attention, view[Attention::kQ].shape[0], numbers) +
         bias_bytes(attention, view);
}

// The gradient's scratch also includes delta.
int64_t workspace_bytes(const AttentionGrad& grad, const OperationView& view, const Card&) {
  if (is_by_library(grad)) return segment_scratch(grad, view).bytes();
  const int64_t q_tokens = view[AttentionGrad::kQ].shape[0];
  return ranges_bytes(q_tokens, view[AttentionGrad::kK].shape[0]) +
         grad.heads * q_tokens * int64_t{sizeof(float)} + bias_bytes(grad, view);
}

// The dot products of d_o and o.
int64_t workspace_bytes(const program::AttentionSinkGrad&, const OperationView& view, const Card&) {
  return view[program::AttentionSinkGrad::kLse].bytes();
}

// One launch for the dot products, one for the sum of each head.
int32_t launches(const program::AttentionSinkGrad&, const OperationView&, const Card&) { return 2; }

template <typename Struct>
bool by_library(const Struct& attention, const OperationView&) {
  return is_by_library(attention);
}

// For each call of the library its tables and the call; the reordering of lse, and zeros outside
// segments.
template <typename Attributes>
int32_t library_launches(const Attributes& attention, const OperationView& view) {
  return static_cast<int32_t>(2 * std::ssize(buckets_of(attention, view))) + 2;
}

// The tables of a bias if there is one, the ranges of keys unless it is split, and the kernel.
int32_t launches(const Attention& attention, const OperationView& view, const Card&) {
  if (is_by_library(attention)) return library_launches(attention, view);
  return (attention.relative_bias ? 1 : 0) + (attention.kernel.splits > 0 ? 0 : 1) + 1;
}

// With the library: the launches of the forward pass, plus the copies that remove gaps. With
// Snug's own kernels: the ranges, delta, a kernel for queries and one for keys, of wide heads on
// the tensor cores one more for values; before them the tables of a bias, and after them the sums
// for its gradient.
int32_t launches(const AttentionGrad& grad, const OperationView& view, const Card&) {
  if (!is_by_library(grad)) {
    const bool has_value_kernel =
        is_on_tensor_cores(grad) && sums_values_apart(matrix_dims(grad.head_dim));
    return 4 + (has_value_kernel ? 1 : 0) + (grad.relative_bias ? 1 : 0) +
           (grad.bias_gradient ? 1 : 0);
  }
  const std::array<bool, 6> dense = are_made_dense(grad);
  return library_launches(grad, view) +
         static_cast<int32_t>(std::count(dense.begin(), dense.end(), true));
}

}  // namespace

SNUG_CARD_NEEDS(Attention, .supports = supports, .decide = decide,
                .workspace_bytes = workspace_bytes, .by_library = by_library<Attention>,
                .launches = launches);
SNUG_CARD_NEEDS(AttentionGrad, .supports = supports, .decide = decide,
                .workspace_bytes = workspace_bytes, .by_library = by_library<AttentionGrad>,
                .launches = launches);
SNUG_CARD_NEEDS(AttentionSinkGrad, .workspace_bytes = workspace_bytes, .launches = launches);
SNUG_CARD_NEEDS(CacheWrite, .launched_together = rotations_together);

}  // namespace snug::backends::cuda
