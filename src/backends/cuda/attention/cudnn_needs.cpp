#include "backends/cuda/attention/cudnn_needs.h"

#include <algorithm>
#include <initializer_list>
#include <type_traits>

#include "backends/cuda/kernels/device_rows.h"
#include "backends/cuda/kernels/sizes.h"
#include "backends/cuda/needs/row_stride.h"

namespace snug::backends::cuda {
namespace {

using program::Attention;
using program::AttentionGrad;
using program::OperationView;
using program::Tensor;

std::string why_not_on(const Card& card) {
  if (!card.cudnn) return "cuDNN is not open";
  if (card.compute_capability < 90 || card.compute_capability >= 110)
    return fmt::format("cuDNN is asked on compute capability 9.0 to 10.x, this is {}.{}",
                       card.compute_capability / 10, card.compute_capability % 10);
  return {};
}

// Of scores and segments.
template <typename Attributes>
std::string why_not_such(const Attributes& attention, const OperationView& view) {
  if (attention.alibi_scale != 0.0F) return "scores have ALiBi's slopes";
  if (attention.sinks) return "scores have sinks";
  if (attention.relative_bias) return "scores have a bias by position";
  if (attention.softcap > 0.0F && !attention.causal) return "a soft cap is not causal";
  constexpr int64_t kMaxDims = 256;
  constexpr int64_t kDimsStep = 8;
  if (attention.head_dim > kMaxDims || attention.head_dim % kDimsStep != 0)
    return fmt::format("heads have {} columns", attention.head_dim);
  if (id_of(view.operation, Attributes::kQBounds) != id_of(view.operation, Attributes::kKBounds))
    return "queries and keys belong to different tokens";
  if (attention.segment_tokens == 0) return "documents may have any length";
  const int64_t segments = view[Attributes::kKBounds].shape[0];
  const int64_t tokens = view[Attributes::kQ].shape[0];
  if (segments > kMaxSegments) return fmt::format("rows may have {} documents", segments);
  if (std::ranges::any_of(buckets_of(attention, view), [&](const SegmentBucket& bucket) {
        return is_mostly_idle(bucket, tokens);
      }))
    return fmt::format("room for {} documents is far more than {} tokens fill", segments, tokens);
  return {};
}

// `tensors` are all operands except lse and bounds.
std::string why_not_these(std::initializer_list<const Tensor*> tensors) {
  const bool are_narrow = std::all_of(tensors.begin(), tensors.end(), [](const Tensor* tensor) {
    return has_narrow_vectors(*tensor);
  });
  return are_narrow ? "" : "its elements are not of 16 bits in rows of whole 16 bytes";
}

// Of a GPU that is not here: on compute capability 10.x the library has gradients of heads of up to
// 128 columns (its support matrix; 9.19 itself refuses 256).
bool has_documented_gradient(int64_t head_dim, const Card& card) {
  return card.compute_capability < 100 || head_dim <= 128;
}

std::string first_of(std::initializer_list<std::string> reasons) {
  const auto* found = std::find_if(reasons.begin(), reasons.end(),
                                   [](const std::string& reason) { return !reason.empty(); });
  return found == reasons.end() ? std::string() : *found;
}

template <typename Attributes>
SegmentScratch scratch_of(const Attributes& attention, const OperationView& view) {
  constexpr bool is_gradient = std::is_same_v<Attributes, AttentionGrad>;
  const int64_t tokens = view[Attributes::kQ].shape[0];
  const std::vector<SegmentBucket> buckets = buckets_of(attention, view);
  // Calls come one after another and use the same tables and workspace.
  int64_t segments = 0;
  for (const SegmentBucket& bucket : buckets) segments = std::max(segments, bucket.segments);
  SegmentScratch scratch;
  scratch.begins = aligned(segments * int64_t{sizeof(int32_t)});
  const int64_t tables = is_gradient ? kSegmentTables : kForwardTables;
  scratch.lse =
      scratch.begins + aligned(tables * segment_table_entries(segments) * int64_t{sizeof(int64_t)});
  int64_t end = scratch.lse + aligned(tokens * attention.heads * int64_t{sizeof(float)});
  const std::array<bool, 6> dense = are_made_dense(attention);
  for (size_t i = 0; i < dense.size(); ++i) {
    if (!dense[i]) continue;
    const int64_t heads = i % 3 == 0 ? attention.heads : attention.kv_heads;
    scratch.dense[i] = end;
    end += aligned(tokens * heads * attention.head_dim * int64_t{sizeof(uint16_t)});
  }
  scratch.library = end;
  scratch.library_bytes = cudnn_workspace_bytes(is_gradient, segments, tokens, attention.heads,
                                                attention.kv_heads, attention.head_dim);
  return scratch;
}

}  // namespace

bool has_narrow_vectors(const Tensor& tensor) {
  return is_narrow(tensor.dtype) && row_stride(tensor) % kVectorElements == 0 &&
         tensor.view.offset % kVectorElements == 0;
}

std::string why_not_cudnn(const Attention& attention, const OperationView& view, const Card& card) {
  if (attention.paged) return "keys lie in pages";
  if (attention.quantized) return "keys have 8 bits";
  return first_of({why_not_on(card), why_not_such(attention, view),
                   why_not_these({&view[Attention::kQ], &view[Attention::kK], &view[Attention::kV],
                                  &view[Attention::kO]})});
}

std::string why_not_cudnn(const AttentionGrad& grad, const OperationView& view, const Card& card) {
  using Grad = AttentionGrad;
  if (grad.deterministic) return "the gradient is to be deterministic";
  constexpr int64_t kMinGradientDims = 64;
  constexpr int64_t kGradientDimsStep = 16;
  if (grad.head_dim < kMinGradientDims || grad.head_dim % kGradientDimsStep != 0)
    return fmt::format("cuDNN is not asked for the gradient of heads of {} columns", grad.head_dim);
  if (!card.asks_cudnn && !has_documented_gradient(grad.head_dim, card))
    return fmt::format("cuDNN has no gradient of heads of {} columns here", grad.head_dim);
  return first_of(
      {why_not_on(card), why_not_such(grad, view),
       why_not_these({&view[Grad::kQ], &view[Grad::kK], &view[Grad::kV], &view[Grad::kO],
                      &view[Grad::kDO], &view[Grad::kDQ], &view[Grad::kDK], &view[Grad::kDV]})});
}

// The library must get q, k, v, dq, dk and dv without gaps between rows; they have gaps as columns
// of a fused projection. The library's own f32 sums follow the stride of the tensor; and where
// heads do not share keys, 9.14 writes dk and dv as if the matrix had no gaps (seen on an H200).
// Inputs are copied where they have gaps; if any output has gaps, all outputs are copied, so that
// only combinations that were verified on a GPU are used.
void decide_copies(const OperationView& view, AttentionGrad& grad) {
  using Grad = AttentionGrad;
  const auto has_gaps = [&](const program::Operand<Grad>& operand) {
    const Tensor& tensor = view[operand];
    return row_stride(tensor) != tensor.shape[1];
  };
  grad.dense = {has_gaps(Grad::kQ), has_gaps(Grad::kK), has_gaps(Grad::kV),
                has_gaps(Grad::kDQ) || has_gaps(Grad::kDK) || has_gaps(Grad::kDV)};
}

std::array<bool, 6> are_made_dense(const Attention& /*attention*/) { return {}; }
std::array<bool, 6> are_made_dense(const AttentionGrad& grad) {
  const auto& [q, k, v, gradients] = grad.dense;
  return {q, k, v, gradients, gradients, gradients};
}

bool is_by_cudnn(const OperationView& view) {
  const auto& attributes = view.operation.attributes;
  if (const auto* attention = attributes.get_if<Attention>()) return is_by_library(*attention);
  const auto* grad = attributes.get_if<AttentionGrad>();
  return grad != nullptr && is_by_library(*grad);
}

SegmentScratch segment_scratch(const Attention& attention, const OperationView& view) {
  return scratch_of(attention, view);
}

SegmentScratch segment_scratch(const AttentionGrad& grad, const OperationView& view) {
  return scratch_of(grad, view);
}

int64_t cudnn_workspace_bytes(bool is_gradient, int64_t segments, int64_t tokens, int64_t heads,
                              int64_t kv_heads, int64_t head_dim) {
  constexpr int64_t kTables = 64 << 10;
  if (!is_gradient) return 256 * segments + kTables;
  const int64_t sums = heads == kv_heads ? 1 : 3;
  return tokens * heads * (sums * head_dim + 1) * int64_t{sizeof(float)} + 448 * segments + kTables;
}

}  // namespace snug::backends::cuda
