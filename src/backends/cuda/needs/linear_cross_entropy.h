// The workspace of the head's loss in chunks: both forms of the kind, and where things lie in it.
#pragma once

#include <cstdint>
#include <type_traits>

#include "backends/loss_operands.h"
#include "program/program.h"

namespace snug::backends::cuda {

// Either form of the kind, with its operands: tensors of a view, or buffers of an invocation.
template <typename T>
struct LossForm : LossOperands<T> {
  int64_t chunk_rows = 0;
  program::LossAlgorithm algorithm = program::LossAlgorithm::whole;
  bool accumulate = false;  // adds to dweight
};

// `source`: the view, or the invocation, which the form refers to.
template <typename Loss, typename Source>
auto form_of(const Loss& loss, const Source& source) {
  using T = std::remove_cvref_t<decltype(source[Loss::kHidden])>;
  LossForm<T> form{loss_operands(loss, source), loss.chunk_rows, loss.algorithm};
  if constexpr (std::is_same_v<Loss, program::LinearCrossEntropyTrain>)
    form.accumulate = loss.accumulate;
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
