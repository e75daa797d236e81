#include "backends/cuda/needs/attention.h"

#include <algorithm>
#include <span>

#include "backends/cuda/kernels/operand.h"
#include "backends/cuda/kernels/sizes.h"
#include "backends/cuda/needs/attention_splits.h"
#include "backends/cuda/needs/kind_needs.h"
#include "backends/cuda/needs/row_stride.h"

namespace snug::backends::cuda {
namespace {

using program::Attention;
using program::AttentionGrad;
using program::Tensor;
using program::TensorId;

// The ranges of keys, those of queries.
int64_t ranges_bytes(int64_t q_tokens, int64_t k_tokens) {
  return (q_tokens + k_tokens) * int64_t{sizeof(TokenRange)};
}

// A bf16 matrix whose rows begin at multiples of 16 bytes.
bool has_bf16_vectors(const Tensor& tensor) {
  return tensor.dtype == base::DType::bf16 && row_stride(tensor) % kVectorElements == 0 &&
         tensor.view.offset % kVectorElements == 0;
}

// `tensors`: q first, and all that are no lse and no bounds.
template <typename Attributes>
bool suits_cudnn(const Attributes& attention, const OperationView& view,
                 std::span<const TensorId> tensors, const Card& card) {
  if (!card.cudnn || card.compute_capability < 90 || card.compute_capability >= 110) return false;
  const auto& reads = view.operation.reads;
  const int64_t segments = view.program.tensor(reads.back()).shape[0];
  const int64_t tokens = view.program.tensor(tensors[0]).shape[0];
  // Blocks are made as if every segment were of the longest kind: at most so many for each that has
  // work.
  constexpr int64_t kMostIdle = 8;
  const bool has_segments = attention.segment_tokens > 0 && segments <= kMostSegments &&
                            reads[reads.size() - 2] == reads.back() &&
                            segments * attention.segment_tokens <= kMostIdle * tokens;
  constexpr int64_t kMostDims = 128;
  return has_segments && attention.head_dim % 32 == 0 && attention.head_dim <= kMostDims &&
         std::all_of(tensors.begin(), tensors.end(),
                     [&](TensorId id) { return has_bf16_vectors(view.program.tensor(id)); });
}

template <typename Attributes>
SegmentScratch scratch_of(const Attributes& attention, bool is_gradient, int64_t segments,
                          int64_t tokens) {
  SegmentScratch scratch;
  scratch.begins = aligned(segments * int64_t{sizeof(int32_t)});
  const int64_t tables = is_gradient ? kSegmentTables : kForwardTables;
  scratch.lse = scratch.begins + aligned(tables * (segments + 1) * int64_t{sizeof(int64_t)});
  scratch.library = scratch.lse + aligned(tokens * attention.heads * int64_t{sizeof(float)});
  scratch.library_bytes = cudnn_workspace_bytes(is_gradient, segments, tokens, attention.heads,
                                                attention.kv_heads, attention.head_dim);
  return scratch;
}

}  // namespace

bool is_by_cudnn(const Attention& attention, const OperationView& view, const Card& card) {
  const auto& reads = view.operation.reads;
  const TensorId tensors[]{reads[0], reads[1], reads[2], view.operation.writes[0]};
  return suits_cudnn(attention, view, tensors, card);
}

bool is_by_cudnn(const AttentionGrad& grad, const OperationView& view, const Card& card) {
  const auto& reads = view.operation.reads;
  const auto& writes = view.operation.writes;
  const TensorId tensors[]{reads[1], reads[2],  reads[3],  reads[4],
                           reads[0], writes[0], writes[1], writes[2]};
  return !grad.deterministic && suits_cudnn(grad, view, tensors, card);
}

bool is_by_cudnn(const OperationView& view, const Card& card) {
  const auto& attributes = view.operation.attributes;
  if (const auto* attention = std::get_if<Attention>(&attributes))
    return is_by_cudnn(*attention, view, card);
  const auto* grad = std::get_if<AttentionGrad>(&attributes);
  return grad != nullptr && is_by_cudnn(*grad, view, card);
}

SegmentScratch segment_scratch(const Attention& attention, const OperationView& view) {
  return scratch_of(attention, false, view.read(3).shape[0], view.read(0).shape[0]);
}

SegmentScratch segment_scratch(const AttentionGrad& grad, const OperationView& view) {
  return scratch_of(grad, true, view.read(6).shape[0], view.read(1).shape[0]);
}

int64_t cudnn_workspace_bytes(bool is_gradient, int64_t segments, int64_t tokens, int64_t heads,
                              int64_t kv_heads, int64_t head_dim) {
  constexpr int64_t kTables = 64 << 10;
  if (!is_gradient) return 256 * segments + kTables;
  const int64_t sums = heads == kv_heads ? 1 : 3;
  return tokens * heads * (sums * head_dim + 1) * int64_t{sizeof(float)} + 448 * segments + kTables;
}

bool supports(const Attention& attention, const OperationView&, const Card& card) {
  return attention.head_dim <= kMaxHeadDim &&
         attention_shared_bytes(attention.head_dim) <= card.shared_bytes;
}

bool supports(const AttentionGrad& grad, const OperationView&, const Card& card) {
  return grad.head_dim <= kMaxHeadDim &&
         attention_grad_shared_bytes(grad.head_dim) <= card.shared_bytes;
}

// What cuDNN may refuse, own kernels do in the same scratch.
int64_t workspace_bytes(const Attention& attention, const OperationView& view, const Card& card) {
  const SplitShape shape = split_shape(attention, view);
  if (const int64_t splits = attention_splits(shape, card); splits > 0)
    return attention_splits_bytes(shape, splits);
  const int64_t own = ranges_bytes(view.read(0).shape[0], view.read(1).shape[0]);
  if (!is_by_cudnn(attention, view, card)) return own;
  return std::max(own, segment_scratch(attention, view).bytes());
}

// And delta.
int64_t workspace_bytes(const AttentionGrad& grad, const OperationView& view, const Card& card) {
  const int64_t q_tokens = view.read(1).shape[0];
  const int64_t own = ranges_bytes(q_tokens, view.read(2).shape[0]) +
                      grad.heads * q_tokens * int64_t{sizeof(float)};
  if (!is_by_cudnn(grad, view, card)) return own;
  return std::max(own, segment_scratch(grad, view).bytes());
}

}  // namespace snug::backends::cuda
