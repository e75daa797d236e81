// The workspace of the head's loss in chunks: both forms of the kind, and where things lie in it.
#pragma once

#include <cstdint>
#include <type_traits>

#include "backends/cuda/product/product_shape.h"
#include "backends/loss_operands.h"
#include "program/ir/program.h"
#include "program/kinds/loss/cross_entropy.h"

namespace snug::backends::cuda {

// Either form of the kind, with its operands: tensors of a view, or buffers of an invocation.
template <typename T>
struct LossForm : LossOperands<T> {
  int64_t chunk_rows = 0;
  program::LossAlgorithm algorithm = program::LossAlgorithm::whole;
  LossAlgorithms products = {};
  float scale = 1.0F;       // of logits
  float softcap = 0.0F;     // of scaled logits; 0: none
  bool accumulate = false;  // adds to dweight
};

// `source`: the view, or the invocation, which the form refers to.
template <typename Loss, typename Source>
auto form_of(const Loss& loss, const Source& source) {
  using T = std::remove_cvref_t<decltype(source[Loss::kHidden])>;
  LossForm<T> form{loss_operands(loss, source), loss.chunks.rows, loss.chunks.algorithm,
                   loss.products.main,          loss.scale,       loss.softcap};
  if constexpr (std::is_same_v<Loss, program::LinearCrossEntropyTrain>)
    form.accumulate = loss.accumulate;
  return form;
}

// The scratch has in this order, after a count of rows: which rows carry loss, a chunk's rows of
// hidden, its logits in f32, what they are before a gain whose gradient is made, sums of blocks of
// rows of their gradients where a bias or a gain has one, the library's own scratch.
struct LossLayout {
  int64_t tokens, vocab, width, chunk_rows, hidden_bytes, sums_bytes;
  bool keeps_product;

  explicit LossLayout(const LossForm<program::Tensor>& form);
  int64_t numbers() const;
  int64_t hidden() const;
  int64_t logits() const;
  int64_t product() const;  // that of the logits where they take its place
  int64_t sums() const;
  int64_t library() const;
};

// What cuBLASLt is asked for, of a chunk of so many rows: its logits; from the gradients of its
// logits, which take their place, those of its hidden, which take the place of its hidden; and
// those of the weight. The latter two only of a form with such a gradient.
ProductShape logits_shape(const LossForm<program::Tensor>& form, int64_t rows);
ProductShape dhidden_shape(const LossForm<program::Tensor>& form, int64_t rows);
ProductShape dweight_shape(const LossForm<program::Tensor>& form, int64_t rows);

// The most launches of a chunk: those of its products (most_launches) and of own kernels.
int32_t chunk_launches(const LossForm<program::Tensor>& form, int64_t multiprocessors,
                       int64_t workspace_bytes);

}  // namespace snug::backends::cuda
