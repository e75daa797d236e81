#include "backends/cpu/loss/loss_shape.h"

#include <cstring>

#include "backends/cpu/attention/softmax_rows.h"
#include "backends/cpu/product/product.h"
#include "base/error.h"
#include "program/kinds/loss/cross_entropy.h"

namespace snug::backends::cpu {
namespace {

// The fields that both kinds have.
template <typename Loss>
LossShape plain_shape_of(const Loss& loss, const program::OperationView& view) {
  const MatrixLayout hidden = matrix_layout(view[Loss::kHidden]);
  const MatrixLayout weight = matrix_layout(view[Loss::kWeight]);
  LossShape shape{.tokens = hidden.rows, .width = hidden.columns, .vocab = weight.rows};
  shape.chunk_rows = loss.chunks.rows;
  shape.block_columns = loss.products.block_columns;
  shape.algorithm = loss.chunks.algorithm;
  shape.type = hidden.dtype;
  shape.weight_stride = weight.row_stride;
  shape.whole = loss.products.main;
  shape.rest = loss.products.rest;
  shape.scale = loss.scale;
  shape.softcap = loss.softcap;
  shape.smoothing = loss.smoothing;
  shape.bias = loss.bias;
  shape.gain = loss.gain;
  return shape;
}

}  // namespace

LossShape shape_of(const program::LinearCrossEntropy& loss, const program::OperationView& view) {
  return plain_shape_of(loss, view);
}

LossShape shape_of(const program::LinearCrossEntropyTrain& loss,
                   const program::OperationView& view) {
  LossShape shape = plain_shape_of(loss, view);
  shape.train = true;
  shape.weight_gradient = loss.weight_gradient;
  shape.accumulate = loss.accumulate;
  shape.bias_gradient = loss.bias_gradient;
  shape.gain_gradient = loss.gain_gradient;
  if (!loss.weight_gradient) return shape;
  const MatrixLayout dweight = matrix_layout(view[program::LinearCrossEntropyTrain::kDWeight]);
  shape.dweight_type = dweight.dtype;
  shape.dweight_stride = dweight.row_stride;
  return shape;
}

void check_products(const LossShape& shape) {
  const bool has_rest =
      shape.algorithm != program::LossAlgorithm::online && shape.vocab % shape.block_columns != 0;
  for (const LossAlgorithms* products : {&shape.whole, &shape.rest}) {
    const bool is_there = products == &shape.whole || has_rest;
    LossAlgorithms decided = *products;
    if (is_there) decided.logits = {};
    if (is_there && shape.train) decided.dhidden = {};
    if (is_there && shape.weight_gradient) decided.dweight = {};
    if (is_there && shape.weight_gradient) decided.dweight_step = 0;
    SNUG_CHECK(decided == LossAlgorithms{},
               "a linear cross-entropy with products by {}, {} and {} that it has not",
               base::word_of(decided.logits), base::word_of(decided.dhidden),
               base::word_of(decided.dweight));
  }
}

int64_t list_trained_rows(const LossShape& shape, const int32_t* targets, float* losses,
                          const Rows& dhidden, int32_t* row_numbers) {
  int64_t trained = 0;
  for (int64_t t = 0; t < shape.tokens; ++t) {
    if (targets[t] >= 0) {
      checked_target(targets[t], shape.vocab);
      row_numbers[trained++] = static_cast<int32_t>(t);
      continue;
    }
    losses[t] = 0;
    if (shape.train)
      std::memset(dhidden.at(t), 0, static_cast<size_t>(dhidden.columns * dhidden.element_bytes()));
  }
  return trained;
}

}  // namespace snug::backends::cpu
