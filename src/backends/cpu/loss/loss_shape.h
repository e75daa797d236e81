// What a linear cross-entropy works on, and which of its rows carry loss.
#pragma once

#include "backends/cpu/rows.h"
#include "backends/loss_operands.h"
#include "program/kinds/loss/cross_entropy.h"

namespace snug::backends::cpu {

// What is not written is ignored.
struct LossShape {
  int64_t tokens = 0;
  int64_t width = 0;
  int64_t vocab = 0;
  int64_t chunk_rows = 0;     // rows that are worked on at once
  int64_t block_columns = 0;  // of the vocabulary, at once
  program::LossAlgorithm algorithm = program::LossAlgorithm::whole;
  base::DType type = base::DType::f32;  // of hidden and weight
  int64_t weight_stride = 0;
  bool train = false;
  bool weight_gradient = false;
  bool accumulate = false;
  base::DType dweight_type = base::DType::f32;
  int64_t dweight_stride = 0;
  LossAlgorithms whole = {};  // of blocks of columns
  LossAlgorithms rest = {};   // of the last one, where it is narrower
  float scale = 1.0F;         // of logits
  float softcap = 0.0F;       // of scaled logits; 0: none
  bool bias = false;
  bool bias_gradient = false;
  bool gain = false;
  bool gain_gradient = false;
};

// The shape without what computes its products, except what the attributes state of that.
LossShape shape_of(const program::LinearCrossEntropy& loss, const program::OperationView& view);
LossShape shape_of(const program::LinearCrossEntropyTrain& loss,
                   const program::OperationView& view);

// Fails a CHECK where something is decided of a product that the loss has not.
void check_products(const LossShape& shape);

// Lists the rows that carry loss (targets at least 0) and returns their number; of the others the
// loss is 0, and so is hidden's gradient where the shape trains. `targets`, `losses` and
// `row_numbers` are (tokens). Fails a CHECK for a target outside the vocabulary.
int64_t list_trained_rows(const LossShape& shape, const int32_t* targets, float* losses,
                          const Rows& dhidden, int32_t* row_numbers);

}  // namespace snug::backends::cpu
