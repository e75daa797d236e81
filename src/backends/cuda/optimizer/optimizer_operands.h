// Combines operations of an optimizer, such as any form of AdamW, into one launch over their
// tensors.
#pragma once

#include <cstdint>
#include <span>

#include "backends/cuda/optimizer/kernels/optimizer.h"
#include "backends/cuda/product/matrices.h"
#include "base/error.h"

namespace snug::backends::cuda {

// The values that all tensors of a launch share.
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

// The tensor as one row; an optimizer's tensors have no gaps.
inline Matrix whole_matrix(const Buffer& buffer) {
  Matrix matrix = matrix_of(buffer);
  walk_flat({&matrix});
  SNUG_CHECK(matrix.rows == 1, "an optimizer's tensor is not contiguous");
  return matrix;
}

template <typename Attributes>
AdamWTensor adamw_tensor(const Attributes& adamw, const Matrix& gradient, const Matrix& weight,
                         int64_t first) {
  return {.elements = weight.columns,
          .first = first,
          .site = adamw.site,
          .weight_decay = adamw.weight_decay,
          .gradient_format = gradient.operand.format,
          .weight_format = weight.operand.format,
          .gradient = gradient.operand.data,
          .weight = weight.operand.data};
}

// Whether the operation accesses nothing that an earlier one of `before` changes.
bool is_independent(const Invocation& invocation, std::span<const Invocation> before);

// Adds joined operations, or a single one, to a launch. `constants_of(attributes, invocation)`
// returns what all must share, and `tensor_of` with the same arguments an operation's tensor.
template <typename Attributes, typename Launch, typename ConstantsOf, typename TensorOf>
void gather(std::span<const Invocation> list, Launch& launch, const ConstantsOf& constants_of,
            const TensorOf& tensor_of) {
  launch.constants = constants_of(list[0].attributes->get<Attributes>(), list[0]);
  for (size_t i = 0; i < list.size(); ++i) {
    const auto& attributes = list[i].attributes->get<Attributes>();
    SNUG_CHECK(!launch.tensors.is_full() && constants_of(attributes, list[i]) == launch.constants &&
                   is_independent(list[i], list.first(i)),
               "step {} of {} cannot be joined to the first", i, list.size());
    const auto tensor = tensor_of(attributes, list[i]);
    launch.tensors.add(tensor, step_blocks(tensor));
    if (list.size() > 1) list[i].note_run(i > 0);
  }
}

}  // namespace snug::backends::cuda
