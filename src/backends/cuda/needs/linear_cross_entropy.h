// The workspace of the head's loss in chunks: both forms of the kind, and where things lie in it.
#pragma once

#include <cstdint>

#include "program/program.h"

namespace snug::backends::cuda {

// Either form of the kind.
struct LossForm {
  int64_t chunk_rows = 0;
  bool train = false;
  bool weight_gradient = false;
  bool accumulate = false;
};

LossForm form_of(const program::LinearCrossEntropy& loss);
LossForm form_of(const program::LinearCrossEntropyTrain& loss);

// In this order, after a count of rows: which rows carry loss, a chunk's rows of hidden, its
// logits in f32, the library's own scratch.
struct LossLayout {
  int64_t tokens, vocab, width, chunk_rows, hidden_bytes;

  LossLayout(const LossForm& form, const program::OperationView& view);
  int64_t numbers() const;
  int64_t hidden() const;
  int64_t logits() const;
  int64_t library() const;
};

}  // namespace snug::backends::cuda
