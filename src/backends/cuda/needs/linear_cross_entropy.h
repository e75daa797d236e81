// The workspace of the head's loss in chunks: both forms of the kind, and where things lie in it.
#pragma once

#include <cstdint>
#include <type_traits>

#include "program/program.h"

namespace snug::backends::cuda {

// Either form of the kind, with its operands: tensors of a view, or buffers of an invocation.
template <typename T>
struct LossForm {
  int64_t chunk_rows;
  const T& hidden;
  const T& weight;
  const T& targets;
  const T& inverse_tokens;
  const T& losses;
  const T& loss;
  const T* dhidden = nullptr;  // null except in the training form
  const T* dweight = nullptr;  // null without the weight's gradient
  bool accumulate = false;     // adds to dweight
};

// `operands`: the view, or the invocation, which the form refers to.
template <typename Loss, typename Operands>
auto form_of(const Loss& loss, const Operands& operands) {
  using T = std::remove_cvref_t<decltype(operands[Loss::kHidden])>;
  LossForm<T> form{.chunk_rows = loss.chunk_rows,
                   .hidden = operands[Loss::kHidden],
                   .weight = operands[Loss::kWeight],
                   .targets = operands[Loss::kTargets],
                   .inverse_tokens = operands[Loss::kInverseTokens],
                   .losses = operands[Loss::kLosses],
                   .loss = operands[Loss::kLoss]};
  if constexpr (std::is_same_v<Loss, program::LinearCrossEntropyTrain>) {
    form.dhidden = &operands[Loss::kDHidden];
    if (loss.weight_gradient) form.dweight = &operands[Loss::kDWeight];
    form.accumulate = loss.accumulate;
  }
  return form;
}

// In this order, after a count of rows: which rows carry loss, a chunk's rows of hidden, its
// logits in f32, the library's own scratch.
struct LossLayout {
  int64_t tokens, vocab, width, chunk_rows, hidden_bytes;

  explicit LossLayout(const LossForm<program::Tensor>& form);
  int64_t numbers() const;
  int64_t hidden() const;
  int64_t logits() const;
  int64_t library() const;
};

}  // namespace snug::backends::cuda
