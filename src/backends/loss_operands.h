// The operands of a linear cross-entropy by name, for code shared by its two kinds.
#pragma once

#include <string_view>
#include <type_traits>

#include "backends/invocation.h"
#include "program/kinds/loss/cross_entropy.h"
#include "program/kinds/product/product_algorithm.h"

namespace snug::backends {

// Tensors of a view, or buffers of an invocation, held by reference; they must outlive this.
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
  }
  return operands;
}

// The algorithms for the products of a linear cross-entropy, which is computed in chunks; `loops`
// where there is no such product. The weight's gradient sums at most this many rows at once; 0:
// all.
struct LossAlgorithms {
  program::ProductAlgorithm logits = program::ProductAlgorithm::loops;
  program::ProductAlgorithm dhidden = program::ProductAlgorithm::loops;
  program::ProductAlgorithm dweight = program::ProductAlgorithm::loops;
  int64_t dweight_step = 0;
  bool operator==(const LossAlgorithms&) const = default;
};

// The algorithms that the attributes state.
template <typename Loss>
LossAlgorithms algorithms_of(const Loss& loss) {
  LossAlgorithms algorithms{.logits = loss.logits_algorithm};
  if constexpr (std::is_same_v<Loss, program::LinearCrossEntropyTrain>) {
    algorithms.dhidden = loss.dhidden_algorithm;
    algorithms.dweight = loss.dweight_algorithm;
    algorithms.dweight_step = loss.dweight_step;
  }
  return algorithms;
}
// The algorithms for the last block of columns, if it is narrower.
template <typename Loss>
LossAlgorithms rest_algorithms_of(const Loss& loss) {
  LossAlgorithms algorithms{.logits = loss.rest_logits_algorithm};
  if constexpr (std::is_same_v<Loss, program::LinearCrossEntropyTrain>) {
    algorithms.dhidden = loss.rest_dhidden_algorithm;
    algorithms.dweight = loss.rest_dweight_algorithm;
    algorithms.dweight_step = loss.rest_dweight_step;
  }
  return algorithms;
}

// Writes these algorithms into the attributes.
template <typename Loss>
void set_algorithms(const LossAlgorithms& whole, const LossAlgorithms& rest, Loss& loss) {
  loss.logits_algorithm = whole.logits;
  loss.rest_logits_algorithm = rest.logits;
  if constexpr (std::is_same_v<Loss, program::LinearCrossEntropyTrain>) {
    loss.dhidden_algorithm = whole.dhidden;
    loss.rest_dhidden_algorithm = rest.dhidden;
    loss.dweight_algorithm = whole.dweight;
    loss.rest_dweight_algorithm = rest.dweight;
    loss.dweight_step = whole.dweight_step;
    loss.rest_dweight_step = rest.dweight_step;
  }
}

// Records the algorithms that computed the products: those of the blocks of columns, and of a
// narrower last one. The kind that only evaluates records its decisions under the names of the
// training kind.
inline void note_algorithms(const LossAlgorithms& whole, const LossAlgorithms& rest,
                            const Invocation& invocation) {
  using Loss = program::LinearCrossEntropyTrain;
  const auto note = [&]<auto member>(program::MemberValue<member> ran) {
    if (ran != program::MemberValue<member>{}) invocation.note_decision<member>(ran);
  };
  note.operator()<&Loss::logits_algorithm>(whole.logits);
  note.operator()<&Loss::rest_logits_algorithm>(rest.logits);
  note.operator()<&Loss::dhidden_algorithm>(whole.dhidden);
  note.operator()<&Loss::rest_dhidden_algorithm>(rest.dhidden);
  note.operator()<&Loss::dweight_algorithm>(whole.dweight);
  note.operator()<&Loss::rest_dweight_algorithm>(rest.dweight);
  note.operator()<&Loss::dweight_step>(whole.dweight_step);
  note.operator()<&Loss::rest_dweight_step>(rest.dweight_step);
}

}  // namespace snug::backends
