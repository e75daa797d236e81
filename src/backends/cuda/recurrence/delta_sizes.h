// The sizes of a gated delta rule, of operands by name: those of an OperationView or of an
// Invocation.
#pragma once

#include "backends/cuda/recurrence/kernels/recurrence_sizes.h"
#include "program/kinds/recurrence/gated_delta_rule.h"

namespace snug::backends::cuda {

static_assert(kDeltaTokens == program::kDeltaChunkTokens);

template <typename Struct, typename Operands>
DeltaSizes delta_sizes(const Struct& rule, const Operands& operands) {
  const program::DeltaShape shape = program::delta_shape(rule, operands);
  return {.tokens = shape.tokens,
          .key_heads = shape.key_heads,
          .value_heads = shape.value_heads,
          .dk = shape.dk,
          .dv = shape.dv,
          .segments = operands[Struct::kBounds].shape[0]};
}

}  // namespace snug::backends::cuda
