// The head's loss and the gradient of its hidden states in one pass over the head's weight, with
// the logits of one block of the vocabulary in memory. It is attention with the weight as keys and
// as values: hidden's gradient is softmax(hidden weight^T) weight less the target's row.
//
//   for each chunk of rows that carry loss
//     for each block of the vocabulary   logits; their exponentials; sums += exponentials weight
//     losses and gradients from the sums
//     for each block, where the weight is trained: logits; their gradients; the weight's
//
// A row's sums are fp32 and made in the order of the vocabulary, scaled when a larger logit comes,
// so neither chunks nor threads change a bit. A gradient of the weight needs the softmax itself:
// the logits of each block are made once more when the sums are known, which costs a product and
// saves what holding all logits of a chunk would cost in bytes and in their traffic. Runs where
// there are AMX tiles, in bf16.
#pragma once

#include "backends/cpu/context.h"
#include "backends/cpu/loss/loss_shape.h"
#include "backends/cpu/product/onednn_matmul.h"
#include "backends/invocation.h"
#include "backends/loss_operands.h"

namespace snug::backends::cpu {

bool is_online_loss(base::DType type, const CpuContext& context);

// Its products are wide ones.
LossShape with_online_algorithms(LossShape shape);

// Rows of a chunk, and entries of the vocabulary of a block.
int64_t online_chunk_rows(int64_t tokens);
int64_t online_block_columns(int64_t vocab);

// How an online loss is cut, and its workspace by offsets in bytes.
class OnlineLossPlan : public Prepared {
 public:
  // Requires is_online_loss.
  OnlineLossPlan(const LossShape& shape, const CpuContext& context);
  const LossShape& shape() const { return shape_; }
  int64_t workspace_bytes() const { return workspace_bytes_; }

  // Rows of a chunk, and entries of the vocabulary of a block.
  int64_t chunk_rows = 0;
  int64_t block_entries = 0;
  int64_t depth = 0;          // width in whole panels
  int64_t hidden_stride = 0;  // elements between gathered rows

  // Row numbers: (tokens) i32. Hidden: a chunk's rows, gathered. Sums: (rows, depth) f32. Rows:
  // largest logit, sum of exponentials and the target's logit of each. Logits: (rows, stride) f32,
  // and in the place of each row its exponentials, bf16. Scratch: of a product.
  int64_t hidden_offset = 0;
  int64_t sums_offset = 0;
  int64_t rows_offset = 0;
  int64_t logits_offset = 0;
  int64_t logits_stride = 0;  // elements
  int64_t scratch_offset = 0;

  // (rows, entries) logits of gathered rows; the exponentials (rows, entries) times the block of
  // the weight, which the sums become or are added to.
  MatmulSpec logits_spec(int64_t rows, int64_t entries) const;
  MatmulSpec sums_spec(int64_t rows, int64_t entries, bool adds) const;
  // The product of a block of the weight: (entries, width) from the gradients of its logits.
  MatmulSpec dweight_spec(int64_t rows, int64_t entries, bool adds) const;

 private:
  int64_t scratch_bytes(const CpuContext& context) const;

  LossShape shape_;
  int64_t workspace_bytes_ = 0;
};

// `operands`: of the invocation.
void run_online_loss(const OnlineLossPlan& plan, const LossOperands<Buffer>& operands,
                     const Invocation& invocation, const CpuContext& context);

}  // namespace snug::backends::cpu
