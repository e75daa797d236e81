#include "backends/cuda/loss/linear_cross_entropy_needs.h"

#include <algorithm>

#include "backends/cuda/kernels/sizes.h"
#include "backends/cuda/needs/kind_needs.h"
#include "backends/cuda/product/matmul_needs.h"
#include "program/kinds/loss/cross_entropy.h"

namespace snug::backends::cuda {
namespace {

using program::LinearCrossEntropy;
using program::LinearCrossEntropyTrain;

using LossTensors = LossForm<program::Tensor>;

bool supports_loss(const LossTensors& form) {
  const base::DType type = form.hidden.dtype;
  if (!supports_product(type, form.weight.dtype, base::DType::f32)) return false;
  if (form.dhidden != nullptr && form.dhidden->dtype != type) return false;
  return form.dweight == nullptr || supports_product(type, type, form.dweight->dtype);
}

int64_t loss_bytes(const LossTensors& form, const Card& card) {
  return LossLayout(form).library() + card.product_workspace_bytes;
}

// In addition to products, rows are gathered, get a bias and a gain where there are any, and are
// turned into losses; for gradients there are a scatter, the gain's factors, and two stages of sums
// for the gradients of bias and gain.
int32_t own_launches(const LossTensors& form) {
  const int32_t of_gain = form.gain == nullptr ? 0 : 1;
  const int32_t of_losses = 2 + (form.bias == nullptr ? 0 : 1) + of_gain;
  if (form.dhidden == nullptr) return of_losses;
  return of_losses + 1 + of_gain + (form.dbias == nullptr ? 0 : 2) +
         (form.dgain == nullptr ? 0 : 2);
}

// The number of rows in a chunk does not matter: what Snug's own kernel computes depends on the
// columns of a product, or on the rows of the weight.
LossAlgorithms product_algorithms(const LossTensors& form) {
  const int64_t rows = LossLayout(form).chunk_rows;
  LossAlgorithms algorithms{.logits = algorithm_of(logits_shape(form, rows))};
  if (form.dhidden != nullptr) algorithms.dhidden = algorithm_of(dhidden_shape(form, rows));
  if (form.dweight != nullptr) algorithms.dweight = algorithm_of(dweight_shape(form, rows));
  return algorithms;
}

template <typename Loss>
Loss decide_chunk(Loss loss, const OperationView& view, const Card& card) {
  if (loss.chunks.rows == 0) loss.chunks.rows = loss_chunk_rows(view[Loss::kHidden].shape[0]);
  loss.chunks.algorithm = program::LossAlgorithm::chunks;
  loss.chunk_launches =
      chunk_launches(form_of(loss, view), card.multiprocessors, card.product_workspace_bytes);
  loss.products = {.main = product_algorithms(form_of(loss, view))};
  return loss;
}

}  // namespace

LossLayout::LossLayout(const LossTensors& form)
    : tokens(form.hidden.shape[0]),
      vocab(form.weight.shape[0]),
      width(form.hidden.shape[1]),
      chunk_rows(form.chunk_rows > 0 ? std::min(form.chunk_rows, tokens) : tokens),
      hidden_bytes(base::size_of(form.hidden.dtype)),
      sums_bytes(form.dbias == nullptr && form.dgain == nullptr
                     ? 0
                     : column_sums_bytes(chunk_rows, vocab)),
      keeps_product(form.dgain != nullptr) {}

int64_t LossLayout::numbers() const { return kArenaAlignment; }
int64_t LossLayout::hidden() const {
  return numbers() + aligned(tokens * int64_t{sizeof(int32_t)});
}
int64_t LossLayout::logits() const { return hidden() + aligned(chunk_rows * width * hidden_bytes); }
int64_t LossLayout::product() const {
  return logits() + (keeps_product ? aligned(chunk_rows * vocab * int64_t{sizeof(float)}) : 0);
}
int64_t LossLayout::sums() const {
  return product() + aligned(chunk_rows * vocab * int64_t{sizeof(float)});
}
int64_t LossLayout::library() const { return sums() + aligned(sums_bytes); }

ProductShape logits_shape(const LossTensors& form, int64_t rows) {
  const LossLayout layout(form);
  const StoredMatrix logits = dense_matrix(base::DType::f32, rows, layout.vocab);
  return {.a = dense_matrix(form.hidden.dtype, rows, layout.width),
          .b = stored_matrix(form.weight),
          .addend = logits,
          .c = logits,
          .transpose_b = true};
}

namespace {

// 16-bit dlogits are in the first half of each row's bytes.
StoredMatrix dlogits_matrix(const LossTensors& form, int64_t rows) {
  const LossLayout layout(form);
  StoredMatrix dlogits = dense_matrix(form.hidden.dtype, rows, layout.vocab);
  dlogits.stride = layout.vocab * int64_t{sizeof(float)} / layout.hidden_bytes;
  return dlogits;
}

}  // namespace

ProductShape dhidden_shape(const LossTensors& form, int64_t rows) {
  const StoredMatrix hidden = dense_matrix(form.hidden.dtype, rows, LossLayout(form).width);
  return {.a = dlogits_matrix(form, rows),
          .b = stored_matrix(form.weight),
          .addend = hidden,
          .c = hidden};
}

ProductShape dweight_shape(const LossTensors& form, int64_t rows) {
  const StoredMatrix dweight = stored_matrix(*form.dweight);
  return {.a = dlogits_matrix(form, rows),
          .b = dense_matrix(form.hidden.dtype, rows, LossLayout(form).width),
          .addend = dweight,
          .c = dweight,
          .transpose_a = true};
}

int32_t chunk_launches(const LossTensors& form, int64_t multiprocessors, int64_t workspace_bytes) {
  const auto most = [&](const ProductShape& shape) {
    return most_launches(shape, multiprocessors, workspace_bytes);
  };
  const auto of_rows = [&](int64_t rows) {
    int32_t launches = most(logits_shape(form, rows));
    if (form.dhidden != nullptr) launches += most(dhidden_shape(form, rows));
    if (form.dweight != nullptr) launches += most(dweight_shape(form, rows));
    return launches;
  };
  const LossLayout layout(form);
  const int64_t rest = layout.tokens % layout.chunk_rows;
  const int32_t of_rest = rest > 0 ? of_rows(rest) : 0;
  return own_launches(form) + std::max(of_rows(layout.chunk_rows), of_rest);
}

namespace {

bool supports(const LinearCrossEntropy& loss, const OperationView& view, const Card&) {
  return supports_loss(form_of(loss, view));
}
bool supports(const LinearCrossEntropyTrain& loss, const OperationView& view, const Card&) {
  return supports_loss(form_of(loss, view));
}

int64_t workspace_bytes(const LinearCrossEntropy& loss, const OperationView& view,
                        const Card& card) {
  return loss_bytes(form_of(loss, view), card);
}
int64_t workspace_bytes(const LinearCrossEntropyTrain& loss, const OperationView& view,
                        const Card& card) {
  return loss_bytes(form_of(loss, view), card);
}

program::LinearCrossEntropy decide(const program::LinearCrossEntropy& loss,
                                   const OperationView& view, const Card& card) {
  return decide_chunk(loss, view, card);
}

program::LinearCrossEntropyTrain decide(const program::LinearCrossEntropyTrain& loss,
                                        const OperationView& view, const Card& card) {
  return decide_chunk(loss, view, card);
}

template <typename Loss>
bool by_library(const Loss&, const OperationView&) {
  return true;
}

// Launches outside of chunks: finding the rows that carry loss, zeros for the gradients of the
// others, and the sum of losses.
int32_t launches(const LinearCrossEntropy&, const OperationView&, const Card&) { return 2; }
int32_t launches(const LinearCrossEntropyTrain&, const OperationView&, const Card&) { return 3; }

}  // namespace

SNUG_CARD_NEEDS(LinearCrossEntropy, .supports = supports, .decide = decide,
                .workspace_bytes = workspace_bytes, .by_library = by_library<LinearCrossEntropy>,
                .launches = launches);
SNUG_CARD_NEEDS(LinearCrossEntropyTrain, .supports = supports, .decide = decide,
                .workspace_bytes = workspace_bytes,
                .by_library = by_library<LinearCrossEntropyTrain>, .launches = launches);

}  // namespace snug::backends::cuda
