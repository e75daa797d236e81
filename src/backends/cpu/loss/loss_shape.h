// The sizes and options of a linear cross-entropy, and the rows that carry loss.
#pragma once

#include "backends/cpu/rows.h"
#include "backends/loss_operands.h"
#include "program/kinds/loss/cross_entropy.h"

namespace snug::backends::cpu {

// Fields that an operation does not set are ignored.
struct LossShape {
  int64_t tokens = 0;
  int64_t width = 0;
  int64_t vocab = 0;
  int64_t chunk_rows = 0;     // rows in a chunk
  int64_t block_columns = 0;  // columns in a block
  program::LossAlgorithm algorithm = program::LossAlgorithm::whole;
  base::DType type = base::DType::f32;  // the type of hidden and weight
  int64_t weight_stride = 0;
  bool train = false;
  bool weight_gradient = false;
  bool accumulate = false;
  base::DType dweight_type = base::DType::f32;
  int64_t dweight_stride = 0;
  LossAlgorithms whole = {};  // for blocks with all their columns
  LossAlgorithms rest = {};   // for the last block, if it is narrower
  float scale = 1.0F;         // multiplies the logits
  float softcap = 0.0F;       // applied to scaled logits; 0 means none
  float smoothing = 0.0F;     // the share of the loss that is the mean over the vocabulary
  bool bias = false;
  bool bias_gradient = false;
  bool gain = false;
  bool gain_gradient = false;
};

// The shape, with only those algorithms that the attributes state.
LossShape shape_of(const program::LinearCrossEntropy& loss, const program::OperationView& view);
LossShape shape_of(const program::LinearCrossEntropyTrain& loss,
                   const program::OperationView& view);

// Fails a CHECK where a decision is about a product that the loss does not have.
void check_products(const LossShape& shape);

// Lists the rows that carry loss (target >= 0) and returns their number. For other rows it sets the
// loss, and in training hidden's gradient, to 0. `targets`, `losses` and `row_numbers` are
// (tokens). Fails a CHECK for a target outside the vocabulary.
int64_t list_trained_rows(const LossShape& shape, const int32_t* targets, float* losses,
                          const Rows& dhidden, int32_t* row_numbers);

}  // namespace snug::backends::cpu
