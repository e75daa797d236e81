#include "backends/cuda/kernels/sizes.h"
#include "backends/cuda/needs/kind_needs.h"

namespace snug::backends::cuda {
namespace {

using program::Attention;
using program::AttentionGrad;

// The ranges of keys, those of queries.
int64_t ranges_bytes(int64_t q_tokens, int64_t k_tokens) {
  return (q_tokens + k_tokens) * int64_t{sizeof(TokenRange)};
}

}  // namespace

bool supports(const Attention& attention, const OperationView&, const Card& card) {
  return attention.head_dim <= kMaxHeadDim &&
         attention_shared_bytes(attention.head_dim) <= card.shared_bytes;
}

bool supports(const AttentionGrad& grad, const OperationView&, const Card& card) {
  return grad.head_dim <= kMaxHeadDim &&
         attention_grad_shared_bytes(grad.head_dim) <= card.shared_bytes;
}

int64_t workspace_bytes(const Attention&, const OperationView& view, const Card&) {
  return ranges_bytes(view.read(0).shape[0], view.read(1).shape[0]);
}

// And delta.
int64_t workspace_bytes(const AttentionGrad& grad, const OperationView& view, const Card&) {
  const int64_t q_tokens = view.read(1).shape[0];
  return ranges_bytes(q_tokens, view.read(2).shape[0]) +
         grad.heads * q_tokens * int64_t{sizeof(float)};
}

}  // namespace snug::backends::cuda
