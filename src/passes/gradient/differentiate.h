// differentiate: appends the backward pass to a forward program, only along paths that reach
// something trainable.
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
  // The `next` form: adds to gradients and to the loss that an earlier micro-batch wrote.
  bool accumulate = false;
  // Weights whose gradients are added up elsewhere, and so begin anew in that form too; null: none.
  std::function<bool(const program::Tensor& weight)> begins_anew{};
  // Round what is added to bf16 gradients stochastically.
  bool stochastic = false;
  int64_t seed = 0;
};

// Where something follows the loss of tokens in the forward list (a loss of pairs of sequences,
// made of it), that is the root: the training form makes the gradient of each row as if its loss
// counted once, and the backward pass begins with what each row's loss counts.
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
// The gradient of a head that trains is a sum of rows. The loss stays as it is, and in the place of
// weigh_rows there is
//
//            .., %d.y, %gradient.head = linear_cross_entropy_train(.., %d.losses) phase backward
//
// Where views cut up a tensor that an operation writes whole (fused projections, heads of a row),
// the gradient of a view is that view of the base's gradient, and every part must get one: zeros,
// where nothing reads it.
//
// The last operation must have a training form (linear_cross_entropy) or be a cross_entropy.
// Gradients are tensors of lifetime step named gradient.NAME.
program::Program differentiate(const program::Program& forward,
                               std::span<const program::TensorId> trainable,
                               const DifferentiateOptions& options);

}  // namespace snug::passes
