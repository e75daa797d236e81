// The head's loss and the gradient of its hidden states in one pass over the head's weight, with
// the logits of only one block of the vocabulary in memory. It works like attention with the weight
// as keys and values: hidden's gradient is softmax(hidden weight^T) weight minus the target's row
// of the weight.
//
//   for each chunk of rows that carry loss
//     for each block of the vocabulary   logits; their exponentials; sums += exponentials * weight
//     losses and gradients from the sums
//     for each block, where the weight is trained: logits; their gradients; the weight's gradient
//
// A row's sums are fp32, made in the order of the vocabulary, and rescaled when a larger logit
// arrives, so neither chunks nor threads change a bit. The gradient of the weight needs the final
// softmax: once the sums are known, the logits of each block are computed again. That costs one
// more product, but saves the memory for all logits of a chunk and its traffic. Runs with AMX
// tiles, in bf16.
//
// A loss with smoothing also needs the sum of each row's logits; and in hidden's gradient a share
// of the target's row of the weight becomes one of the mean of all rows, which is made first.
#pragma once

#include "backends/cpu/context.h"
#include "backends/cpu/loss/loss_shape.h"
#include "backends/cpu/product/onednn_matmul.h"
#include "backends/invocation.h"
#include "backends/loss_operands.h"

namespace snug::backends::cpu {

bool is_online_loss(base::DType type, const CpuContext& context);

// Sets the algorithm of all products to the wide kernel.
LossShape with_online_algorithms(LossShape shape);

// The rows in a chunk, and the vocabulary entries in a block.
int64_t online_chunk_rows(int64_t tokens);
int64_t online_block_columns(int64_t vocab);

// The chunks and blocks of an online loss, and the parts of its workspace by their offsets in
// bytes.
class OnlineLossPlan : public Prepared {
 public:
  // Requires is_online_loss.
  OnlineLossPlan(const LossShape& shape, const CpuContext& context);
  const LossShape& shape() const { return shape_; }
  int64_t workspace_bytes() const { return workspace_bytes_; }

  // The rows in a chunk, and the vocabulary entries in a block.
  int64_t chunk_rows = 0;
  int64_t block_entries = 0;
  int64_t depth = 0;          // width, rounded up to whole panels
  int64_t hidden_stride = 0;  // elements from one gathered row to the next

  // Row numbers: (tokens) i32. Hidden: a chunk's gathered rows. Sums: (rows, depth) f32. Rows: each
  // row's largest logit, sum of exponentials, and the logit of its target. Logit sums: (rows) f32,
  // and mean weight: (width) f32, only with smoothing. Logits: (rows, stride) f32, each row
  // overwritten by its exponentials in bf16. Scratch: for one product.
  int64_t hidden_offset = 0;
  int64_t sums_offset = 0;
  int64_t rows_offset = 0;
  int64_t logit_sums_offset = 0;
  int64_t mean_weight_offset = 0;
  int64_t logits_offset = 0;
  int64_t logits_stride = 0;  // in elements
  int64_t scratch_offset = 0;

  // The logits (rows, entries) of gathered rows; and the exponentials (rows, entries) times the
  // block of the weight, which sets the sums or is added to them.
  MatmulSpec logits_spec(int64_t rows, int64_t entries) const;
  MatmulSpec sums_spec(int64_t rows, int64_t entries, bool adds) const;
  // The gradient of a block of the weight, (entries, width), from the gradients of its logits.
  MatmulSpec dweight_spec(int64_t rows, int64_t entries, bool adds) const;

 private:
  int64_t scratch_bytes(const CpuContext& context) const;

  LossShape shape_;
  int64_t workspace_bytes_ = 0;
};

// `operands` are the operands of the invocation.
void run_online_loss(const OnlineLossPlan& plan, const LossOperands<Buffer>& operands,
                     const Invocation& invocation, const CpuContext& context);

}  // namespace snug::backends::cpu
