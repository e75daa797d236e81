// The operands of a linear cross-entropy by name, for code that both of its kinds share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "backends/backend.h"

namespace snug::backends {

// Refers to the buffers of an invocation and must not outlive them.
struct LossOperands {
  const Buffer& hidden;             // (tokens, d)
  const Buffer& weight;             // (vocab, d)
  const Buffer& targets;            // (tokens) i32
  const Buffer& inverse_tokens;     // (1) f32
  const Buffer& losses;             // (tokens) f32
  const Buffer& loss;               // (1) f32
  const Buffer* dhidden = nullptr;  // (tokens, d); null where no gradient is made
  const Buffer* dweight = nullptr;  // (vocab, d); likewise, for the gradient of the weight
};

// Of an invocation of LinearCrossEntropy or LinearCrossEntropyTrain.
template <typename Loss>
LossOperands loss_operands(const Loss& loss, const Invocation& invocation) {
  LossOperands operands{.hidden = invocation[Loss::kHidden],
                        .weight = invocation[Loss::kWeight],
                        .targets = invocation[Loss::kTargets],
                        .inverse_tokens = invocation[Loss::kInverseTokens],
                        .losses = invocation[Loss::kLosses],
                        .loss = invocation[Loss::kLoss]};
  if constexpr (std::is_same_v<Loss, program::LinearCrossEntropyTrain>) {
    operands.dhidden = &invocation[Loss::kDHidden];
    if (loss.weight_gradient) operands.dweight = &invocation[Loss::kDWeight];
  }
  return operands;
}

// Rows of `tokens` that carry loss, as the host's copy of the targets says; all where it has none.
inline int64_t rows_with_loss(const Invocation& invocation, int64_t tokens) {
  const auto* targets = invocation.extent.as<const int32_t>();
  if (targets == nullptr) return tokens;
  return std::count_if(targets, targets + invocation.extent.elements(),
                       [](int32_t target) { return target >= 0; });
}

}  // namespace snug::backends
