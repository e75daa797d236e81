#include "backends/cuda/needs/linear_cross_entropy.h"

#include <algorithm>

#include "backends/cuda/needs/kind_needs.h"
#include "backends/cuda/needs/matmul.h"

namespace snug::backends::cuda {
namespace {

using program::LinearCrossEntropy;
using program::LinearCrossEntropyTrain;

bool supports_loss(const LossForm& form, const OperationView& view) {
  const base::DType type = view.read(0).dtype;
  if (!supports_product(type, view.read(1).dtype, base::DType::f32)) return false;
  if (form.train && view.write(2).dtype != type) return false;
  if (!form.weight_gradient) return true;
  return supports_product(type, type, (form.accumulate ? view.update(0) : view.write(3)).dtype);
}

int64_t loss_bytes(const LossForm& form, const OperationView& view, const Card& card) {
  return LossLayout(form, view).library() + card.product_workspace_bytes;
}

}  // namespace

LossForm form_of(const LinearCrossEntropy& loss) { return {.chunk_rows = loss.chunk_rows}; }
LossForm form_of(const LinearCrossEntropyTrain& loss) {
  return {loss.chunk_rows, true, loss.weight_gradient, loss.accumulate};
}

LossLayout::LossLayout(const LossForm& form, const OperationView& view)
    : tokens(view.read(0).shape[0]),
      vocab(view.read(1).shape[0]),
      width(view.read(0).shape[1]),
      chunk_rows(form.chunk_rows > 0 ? std::min(form.chunk_rows, tokens) : tokens),
      hidden_bytes(base::size_of(view.read(0).dtype)) {}

int64_t LossLayout::numbers() const { return kArenaAlignment; }
int64_t LossLayout::hidden() const {
  return numbers() + aligned(tokens * int64_t{sizeof(int32_t)});
}
int64_t LossLayout::logits() const { return hidden() + aligned(chunk_rows * width * hidden_bytes); }
int64_t LossLayout::library() const {
  return logits() + aligned(chunk_rows * vocab * int64_t{sizeof(float)});
}

bool supports(const LinearCrossEntropy& loss, const OperationView& view, const Card&) {
  return supports_loss(form_of(loss), view);
}
bool supports(const LinearCrossEntropyTrain& loss, const OperationView& view, const Card&) {
  return supports_loss(form_of(loss), view);
}

int64_t workspace_bytes(const LinearCrossEntropy& loss, const OperationView& view,
                        const Card& card) {
  return loss_bytes(form_of(loss), view, card);
}
int64_t workspace_bytes(const LinearCrossEntropyTrain& loss, const OperationView& view,
                        const Card& card) {
  return loss_bytes(form_of(loss), view, card);
}

}  // namespace snug::backends::cuda
