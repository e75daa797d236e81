// From operations of AdamW, in any of its forms, to one launch over their tensors.
#pragma once

#include <span>
#include <variant>

#include "backends/cuda/kernels/optimizer.h"
#include "backends/cuda/matrices.h"
#include "base/error.h"

namespace snug::backends::cuda {

// What the tensors of a launch must share.
template <typename Attributes>
AdamWConstants adamw_constants(const Attributes& adamw, const Invocation& invocation) {
  return {
      {floats_of(invocation[Attributes::kFactor]), floats_of(invocation[Attributes::kLearningRate]),
       integers_of(invocation[Attributes::kStep])},
      adamw.beta1,
      adamw.beta2,
      adamw.epsilon,
      adamw.seed};
}

// As one row; an optimizer's tensors have no gaps.
inline Matrix whole_matrix(const Buffer& buffer) {
  Matrix matrix = matrix_of(buffer);
  walk_flat({&matrix});
  SNUG_CHECK(matrix.rows == 1, "an optimizer's tensor is not contiguous");
  return matrix;
}

template <typename Attributes>
AdamWTensor adamw_tensor(const Attributes& adamw, const Matrix& gradient, const Matrix& weight) {
  return {.elements = weight.columns,
          .site = adamw.site,
          .weight_decay = adamw.weight_decay,
          .gradient_is_bf16 = gradient.operand.is_bf16,
          .weight_is_bf16 = weight.operand.is_bf16,
          .gradient = gradient.operand.data,
          .weight = weight.operand.data};
}

inline bool same_form(const program::AdamW& a, const program::AdamW& b) {
  return a.stochastic == b.stochastic;
}
inline bool same_form(const program::AdamW8bit&, const program::AdamW8bit&) { return true; }

// Whether an operation touches nothing that one before it changes.
bool is_independent(const Invocation& invocation, std::span<const Invocation> before);

// Puts the first operation and those behind it that may be stepped with it into a launch; returns
// how many. `tensor_of(attributes, invocation)` gives an operation's part of it.
template <typename Attributes, typename Launch, typename TensorOf>
size_t gather(std::span<const Invocation> list, Launch& launch, const TensorOf& tensor_of) {
  const auto& first = std::get<Attributes>(*list[0].attributes);
  launch.constants = adamw_constants(first, list[0]);
  size_t count = 0;
  for (const Invocation& invocation : list) {
    const auto* adamw = std::get_if<Attributes>(invocation.attributes);
    if (adamw == nullptr || !same_form(*adamw, first) || launch.tensors.is_full()) break;
    if (adamw_constants(*adamw, invocation) != launch.constants) break;
    if (!is_independent(invocation, list.first(count))) break;
    const auto tensor = tensor_of(*adamw, invocation);
    launch.tensors.add(tensor, adamw_blocks(tensor));
    ++count;
  }
  return count;
}

}  // namespace snug::backends::cuda
