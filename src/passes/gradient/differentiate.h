// differentiate: appends the backward pass to a forward program, limited to paths that lead to a
// trainable tensor.
//
//   before   %y = matmul(%x, %w) {transpose_b}            w is trainable, x needs no gradient
//            %losses, %loss = linear_cross_entropy(%y, %head, %targets, %inverse_tokens)
//   after    %y = matmul(%x, %w) {transpose_b}
//            %losses, %loss, %d.y =
//                linear_cross_entropy_train(%y, %head, %targets, %inverse_tokens)
//            %gradient.w = matmul(%d.y, %x) {transpose_a} phase backward
#pragma once

#include <functional>
#include <span>

#include "program/ir/program.h"

namespace snug::passes {

struct DifferentiateOptions {
  program::DType gradient = program::DType::f32;  // of trainable tensors
  // The form for `micro_next`: adds to the gradients and to the loss that an earlier micro-batch
  // wrote.
  bool accumulate = false;
  // Selects weights whose gradients are accumulated elsewhere, so that they start from zero in the
  // accumulating form too; null: none.
  std::function<bool(const program::Tensor& weight)> begins_anew{};
  // Whether sums that are stored in bf16 gradients are rounded stochastically.
  bool stochastic = false;
  int64_t seed = 0;
};

// Where the loss of tokens is followed by further operations (a loss of pairs of sequences,
// computed from it), the gradient starts at the last of these: the training form computes each
// row's gradient as if its loss had weight 1, and the backward pass first computes the actual
// weight of each row's loss.
//
//   before   %losses, %token_loss = linear_cross_entropy(%y, %head, %targets, %inverse_tokens)
//            %policy = sum_segments(%losses, %bounds) {scale -1}
//            %measures, %loss = dpo(%policy, %reference, %bounds, %inverse_pairs)
//   after    %losses, %token_loss, %d.hidden = linear_cross_entropy_train(...)
//            %policy = sum_segments(%losses, %bounds) {scale -1}
//            %measures, %loss = dpo(%policy, %reference, %bounds, %inverse_pairs)
//            %d.policy = dpo_grad(%policy, %reference, %bounds, %inverse_pairs) phase backward
//            %d.losses = spread_segments(%d.policy, %bounds) {scale -1} phase backward
//            %d.y = weigh_rows(%d.hidden, %d.losses) phase backward
//
// The gradient of a trainable head is a sum over rows. In that case the forward loss is unchanged,
// and weigh_rows is replaced by
//
//            .., %d.y, %gradient.head = linear_cross_entropy_train(.., %d.losses) phase backward
//
// Where views cut up a tensor that an operation writes whole (fused projections, heads of a row),
// the gradient of a view is the same view of the base's gradient. Every part must get a gradient:
// zeros for a part that nothing reads.
//
// The last operation must have a training form (linear_cross_entropy) or be a cross_entropy.
// Gradients are tensors of lifetime step named gradient.NAME.
program::Program differentiate(const program::Program& forward,
                               std::span<const program::TensorId> trainable,
                               const DifferentiateOptions& options);

}  // namespace snug::passes
