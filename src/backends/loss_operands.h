// The operands of a linear cross-entropy by name, for code that both of its kinds share.
#pragma once

#include <type_traits>

#include "backends/backend.h"

namespace snug::backends {

// Tensors of a view or buffers of an invocation, which it refers to and must not outlive.
template <typename T>
struct LossOperands {
  const T& hidden;             // (tokens, d)
  const T& weight;             // (vocab, d)
  const T& targets;            // (tokens) i32
  const T& inverse_tokens;     // (1) f32
  const T& losses;             // (tokens) f32
  const T& loss;               // (1) f32
  const T* dhidden = nullptr;  // (tokens, d); null where no gradient is made
  const T* dweight = nullptr;  // (vocab, d); likewise, for the gradient of the weight
};

// Of LinearCrossEntropy or LinearCrossEntropyTrain; `source` is the view or the invocation.
template <typename Loss, typename Source>
auto loss_operands(const Loss& loss, const Source& source) {
  using T = std::remove_cvref_t<decltype(source[Loss::kHidden])>;
  LossOperands<T> operands{.hidden = source[Loss::kHidden],
                           .weight = source[Loss::kWeight],
                           .targets = source[Loss::kTargets],
                           .inverse_tokens = source[Loss::kInverseTokens],
                           .losses = source[Loss::kLosses],
                           .loss = source[Loss::kLoss]};
  if constexpr (std::is_same_v<Loss, program::LinearCrossEntropyTrain>) {
    operands.dhidden = &source[Loss::kDHidden];
    if (loss.weight_gradient) operands.dweight = &source[Loss::kDWeight];
  }
  return operands;
}

}  // namespace snug::backends
