// The head's loss and the gradient of its hidden states in one pass over the head's weight, with no
// more logits in memory than a second-level cache holds. It is attention with the weight as keys
// and as values: hidden's gradient is softmax(hidden weight^T) weight less the target's row.
//
//   for each chunk of rows that carry loss
//     for each block of the vocabulary   packed once for both products, by all threads
//       for each block of rows           logits; their exponentials; sums += exponentials weight
//     losses and gradients from the sums
//
// A row's sums are fp32 and made in the order of the vocabulary, scaled when a larger logit comes,
// so neither chunks nor threads change a bit. A gradient of the weight needs the softmax itself and
// is not made here. Runs where there are AMX tiles, in bf16.
#pragma once

#include "backends/backend.h"
#include "backends/cpu/context.h"
#include "backends/cpu/loss_shape.h"
#include "backends/loss_operands.h"

namespace snug::backends::cpu {

bool is_online_loss(base::DType type, bool weight_gradient, const CpuContext& context);

// Its products are made by the kernels of wide products, block by block of the vocabulary.
LossShape with_online_algorithms(LossShape shape);

// Rows of a chunk.
int64_t online_chunk_rows(int64_t tokens);

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
  // largest logit, sum of exponentials and the target's logit of each. Keys and values: a block of
  // the weight, packed for either product. Threads: logits f32 and exponentials bf16 of some rows.
  int64_t hidden_offset = 0;
  int64_t sums_offset = 0;
  int64_t rows_offset = 0;
  int64_t keys_offset = 0;
  int64_t values_offset = 0;
  int64_t threads_offset = 0;
  int64_t thread_bytes = 0;
  int64_t exponentials_offset = 0;  // in a thread's bytes

 private:
  LossShape shape_;
  int64_t workspace_bytes_ = 0;
};

// `operands`: of the invocation.
void run_online_loss(const OnlineLossPlan& plan, const LossOperands<Buffer>& operands,
                     const Invocation& invocation, const CpuContext& context);

}  // namespace snug::backends::cpu
