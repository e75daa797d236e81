// The workspace of the head's loss in chunks: its layout for both forms of the kind.
#pragma once

#include <cstdint>
#include <type_traits>

#include "backends/cuda/product/product_shape.h"
#include "backends/loss_operands.h"
#include "program/ir/program.h"
#include "program/kinds/loss/cross_entropy.h"

namespace snug::backends::cuda {

// Either form of the kind with its operands: tensors of a view, or buffers of an invocation.
template <typename T>
struct LossForm : LossOperands<T> {
  int64_t chunk_rows = 0;
  program::LossAlgorithm algorithm = program::LossAlgorithm::whole;
  LossAlgorithms products = {};
  float scale = 1.0F;       // multiplies the logits
  float softcap = 0.0F;     // applied to scaled logits; 0 means none
  float smoothing = 0.0F;   // the share of the loss that is the mean over the vocabulary
  bool accumulate = false;  // adds to dweight instead of overwriting it
};

// `source` is the view or the invocation, and must outlive the form.
template <typename Loss, typename Source>
auto form_of(const Loss& loss, const Source& source) {
  using T = std::remove_cvref_t<decltype(source[Loss::kHidden])>;
  LossForm<T> form{loss_operands(loss, source),
                   loss.chunks.rows,
                   loss.chunks.algorithm,
                   loss.products.main,
                   loss.scale,
                   loss.softcap,
                   loss.smoothing};
  if constexpr (std::is_same_v<Loss, program::LinearCrossEntropyTrain>)
    form.accumulate = loss.accumulate;
  return form;
}

// The scratch contains, in this order: the number of rows that carry loss, and which ones; a
// chunk's rows of hidden; its logits in f32; the input of a gain, where the gain has a gradient;
// sums over blocks of rows for the gradients of bias and gain, where there are such; the library's
// own scratch.
struct LossLayout {
  int64_t tokens, vocab, width, chunk_rows, hidden_bytes, sums_bytes;
  bool keeps_product;

  explicit LossLayout(const LossForm<program::Tensor>& form);
  int64_t numbers() const;
  int64_t hidden() const;
  int64_t logits() const;
  int64_t product() const;  // the same as logits() where they share memory
  int64_t sums() const;
  int64_t library() const;
};

// The cuBLASLt products for a chunk of `rows` rows: its logits; the gradients of its hidden, which
// overwrite hidden, from those of its logits, which have overwritten the logits; and the gradient
// of the weight. The latter two require a form with such a gradient.
ProductShape logits_shape(const LossForm<program::Tensor>& form, int64_t rows);
ProductShape dhidden_shape(const LossForm<program::Tensor>& form, int64_t rows);
ProductShape dweight_shape(const LossForm<program::Tensor>& form, int64_t rows);

// The most launches for a chunk: those of its products (most_launches) and of Snug's own kernels.
int32_t chunk_launches(const LossForm<program::Tensor>& form, int64_t multiprocessors,
                       int64_t workspace_bytes);

}  // namespace snug::backends::cuda
