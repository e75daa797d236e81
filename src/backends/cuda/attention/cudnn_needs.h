// Which attentions cuDNN computes, and the scratch that this takes.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "backends/cuda/attention/segment_buckets.h"
#include "backends/cuda/needs/card.h"
#include "program/ir/program.h"
#include "program/kinds/attention/attention.h"

namespace snug::backends::cuda {

// Why cuDNN is not asked for an attention, as the end of a sentence; empty where it is. It is asked
// on compute capability 9.0 to 10.x for bf16 or f16, heads of up to 256 columns, a multiple of 8,
// scores with or without soft cap and window, but without ALiBi, biases and sinks; keys that lie in
// no pages and belong to the same tokens as the queries; segments of a known length, and not far
// more room for them than tokens. Of gradients besides, where they need not be deterministic, since
// the library adds in any order, and where heads have 64 columns or more, a multiple of 16:
// narrower ones ended with an illegal instruction on an H200, after which nothing runs, and others
// ask for four times the scratch (72 columns, cuDNN 9.19).
//
// On a GPU that is here the library is then asked itself, and what it computes is compared with own
// kernels (library_check.h). For a GPU that is not here, what NVIDIA documents is taken for
// granted.
std::string why_not_cudnn(const program::Attention& attention, const program::OperationView& view,
                          const Card& card);
std::string why_not_cudnn(const program::AttentionGrad& grad, const program::OperationView& view,
                          const Card& card);
template <typename Attributes>
bool suits_cudnn(const Attributes& attention, const program::OperationView& view,
                 const Card& card) {
  return why_not_cudnn(attention, view, card).empty();
}

// Whether the operation is an attention, or its gradient, that is assigned to cuDNN.
bool is_by_cudnn(const program::OperationView& view);

// The buckets of its segments, for each of which the library is called. Requires segment_tokens.
template <typename Attributes>
std::vector<SegmentBucket> buckets_of(const Attributes& attention,
                                      const program::OperationView& view) {
  return segment_buckets(view[Attributes::kKBounds].shape[0], attention.segment_tokens,
                         view[Attributes::kQ].shape[0]);
}

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

// Decides which tensors of a gradient are copied for the library.
void decide_copies(const program::OperationView& view, program::AttentionGrad& grad);
// Which of q, k, v, dq, dk and dv are copied to remove gaps.
std::array<bool, 6> are_made_dense(const program::Attention& attention);
std::array<bool, 6> are_made_dense(const program::AttentionGrad& grad);

// Whether a matrix has 16-bit elements and rows that begin at multiples of 16 bytes.
bool has_narrow_vectors(const program::Tensor& tensor);

}  // namespace snug::backends::cuda
