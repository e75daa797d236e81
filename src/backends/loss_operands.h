// The operands of a linear cross-entropy by name, for code shared by its two kinds.
#pragma once

#include <type_traits>

#include "backends/invocation.h"
#include "program/kinds/loss/cross_entropy.h"

namespace snug::backends {

using program::LossAlgorithms;

// Tensors of a view or buffers of an invocation, which it refers to and must not outlive.
template <typename T>
struct LossOperands {
  const T& hidden;             // (tokens, d)
  const T& weight;             // (vocab, d)
  const T& targets;            // (tokens) i32
  const T& inverse_tokens;     // (1) or (tokens) f32
  const T& losses;             // (tokens) f32
  const T& loss;               // (1) f32
  const T* bias = nullptr;     // (vocab); null where there is none
  const T* gain = nullptr;     // (vocab); null where there is none
  const T* dhidden = nullptr;  // (tokens, d); null where there is no gradient
  const T* dweight = nullptr;  // (vocab, d); null where the weight has no gradient
  const T* dbias = nullptr;    // (vocab); null where the bias has no gradient
  const T* dgain = nullptr;    // (vocab); null where the gain has no gradient
  const T* hits = nullptr;     // (tokens, 1) f32; null where they are not asked for
};

// The operands of LinearCrossEntropy or LinearCrossEntropyTrain; `source` is the view or the
// invocation.
template <typename Loss, typename Source>
auto loss_operands(const Loss& loss, const Source& source) {
  using T = std::remove_cvref_t<decltype(source[Loss::kHidden])>;
  LossOperands<T> operands{.hidden = source[Loss::kHidden],
                           .weight = source[Loss::kWeight],
                           .targets = source[Loss::kTargets],
                           .inverse_tokens = source[Loss::kInverseTokens],
                           .losses = source[Loss::kLosses],
                           .loss = source[Loss::kLoss]};
  if (loss.bias) operands.bias = &source[Loss::kBias];
  if (loss.gain) operands.gain = &source[Loss::kGain];
  if constexpr (std::is_same_v<Loss, program::LinearCrossEntropyTrain>) {
    operands.dhidden = &source[Loss::kDHidden];
    if (loss.weight_gradient) operands.dweight = &source[Loss::kDWeight];
    if (loss.bias_gradient) operands.dbias = &source[Loss::kDBias];
    if (loss.gain_gradient) operands.dgain = &source[Loss::kDGain];
  } else {
    if (loss.hits) operands.hits = &source[Loss::kHits];
  }
  return operands;
}

// Notes what computed the products that were made: of blocks of columns, and of a narrower last
// one. Decisions of the kind that only evaluates have the names of the other's.
inline void note_algorithms(const LossAlgorithms& main, const LossAlgorithms& rest,
                            const Invocation& invocation) {
  if (invocation.trace == nullptr) return;
  const program::LossProducts ran{.main = main, .rest = rest};
  program::for_each_part_of<program::LossProducts>([&](const auto& part) {
    if (const auto value = part.of(ran); value != std::decay_t<decltype(value)>{})
      invocation.trace->decisions.emplace_back(part.name, static_cast<int64_t>(value));
  });
}

}  // namespace snug::backends
