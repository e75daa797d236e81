#include "backends/cuda/needs/linear_cross_entropy.h"

#include <algorithm>

#include "backends/cuda/needs/kind_needs.h"
#include "backends/cuda/needs/matmul.h"

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

// Rows are gathered, multiplied and turned into losses; for gradients there are a product and a
// scatter, and another product for the weight's.
int32_t chunk_launches(const LossTensors& form) {
  if (form.dhidden == nullptr) return 3;
  return form.dweight == nullptr ? 5 : 6;
}

template <typename Loss>
Loss decide_chunk(Loss loss, const OperationView& view) {
  if (loss.chunk_rows == 0) loss.chunk_rows = loss_chunk_rows(view[Loss::kHidden].shape[0]);
  loss.algorithm = program::LossAlgorithm::chunks;
  loss.chunk_launches = chunk_launches(form_of(loss, view));
  return loss;
}

}  // namespace

LossLayout::LossLayout(const LossTensors& form)
    : tokens(form.hidden.shape[0]),
      vocab(form.weight.shape[0]),
      width(form.hidden.shape[1]),
      chunk_rows(form.chunk_rows > 0 ? std::min(form.chunk_rows, tokens) : tokens),
      hidden_bytes(base::size_of(form.hidden.dtype)) {}

int64_t LossLayout::numbers() const { return kArenaAlignment; }
int64_t LossLayout::hidden() const {
  return numbers() + aligned(tokens * int64_t{sizeof(int32_t)});
}
int64_t LossLayout::logits() const { return hidden() + aligned(chunk_rows * width * hidden_bytes); }
int64_t LossLayout::library() const {
  return logits() + aligned(chunk_rows * vocab * int64_t{sizeof(float)});
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
                                   const OperationView& view, const Card&) {
  return decide_chunk(loss, view);
}

program::LinearCrossEntropyTrain decide(const program::LinearCrossEntropyTrain& loss,
                                        const OperationView& view, const Card&) {
  return decide_chunk(loss, view);
}

// Besides chunks: which rows carry loss, zeros for the gradient of the others, and the sum.
int32_t launches(const LinearCrossEntropy&, const OperationView&) { return 2; }
int32_t launches(const LinearCrossEntropyTrain&, const OperationView&) { return 3; }

}  // namespace

SNUG_CARD_NEEDS(LinearCrossEntropy, .supports = supports, .decide = decide,
                .workspace_bytes = workspace_bytes, .launches = launches);
SNUG_CARD_NEEDS(LinearCrossEntropyTrain, .supports = supports, .decide = decide,
                .workspace_bytes = workspace_bytes, .launches = launches);

}  // namespace snug::backends::cuda
