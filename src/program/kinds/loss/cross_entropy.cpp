#include "program/kinds/loss/cross_entropy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "base/error.h"
#include "program/ir/tape.h"
#include "program/kinds/functions.h"
#include "program/kinds/loss/cross_entropy_derivative.h"
#include "program/kinds/loss/cross_entropy_expansion.h"
#include "program/kinds/product/matmul.h"
#include "program/kinds/rate_names.h"
#include "program/kinds/shape_rule.h"
#include "program/kinds/traffic.h"

namespace snug::program {
namespace {

// Operations per logit besides the products. Loss: maximum, exponential (2), sum; the gradient adds
// a division and a scale.
constexpr double kLossFlops = 4;
constexpr double kGradFlops = 6;

// One number for all tokens, or one for each token.
template <typename Struct>
void check_inverse_tokens(const Struct&, const OperationView& view, ShapeRule& rule) {
  const Tensor& inverse_tokens = view[Struct::kInverseTokens];
  const bool is_each = inverse_tokens.shape == view[Struct::kTargets].shape;
  rule.measure(Struct::kInverseTokens, is_each ? inverse_tokens.shape : Shape{1});
}

// Checks the operands that all linear forms share: hidden, weight, targets, inverse_tokens, bias,
// gain.
template <typename Struct>
void check_linear_reads(const Struct& loss, const OperationView& view, ShapeRule& rule) {
  const Tensor& hidden = view[Struct::kHidden];
  const Tensor& weight = view[Struct::kWeight];
  rule.rank(Struct::kHidden, 2);
  rule.rank(Struct::kWeight, 2);
  rule.shape(Struct::kWeight, Shape{weight.shape[0], hidden.shape[1]});
  rule.mixed_types({Struct::kHidden, Struct::kWeight});
  rule.index(Struct::kTargets, Shape{hidden.shape[0]});
  check_inverse_tokens(loss, view, rule);
  const auto check_vector = [&](const Operand<Struct>& vector) {
    rule.shape(vector, Shape{weight.shape[0]});
    rule.mixed_types({Struct::kHidden, vector});
  };
  if (loss.bias) check_vector(Struct::kBias);
  if (loss.gain) check_vector(Struct::kGain);
}

template <typename Struct>
void check_smoothing(const Struct& loss, ShapeRule& rule) {
  rule.require(loss.smoothing >= 0.0F && loss.smoothing <= 1.0F,
               "has a smoothing that is not in [0, 1]");
}

template <typename Struct>
void check_losses(const Struct&, int64_t tokens, ShapeRule& rule) {
  rule.measure(Struct::kLosses, Shape{tokens});
  rule.measure(Struct::kLoss, Shape{1});
}

// The extent of these losses: the rows that carry loss.
template <typename Struct>
Extent rows_with_loss(const Struct&, const OperationView& view, const BatchBounds& bounds) {
  const std::span<const int32_t> targets = bounds[id_of(view.operation, Struct::kTargets)];
  const auto rows = static_cast<double>(view[Struct::kTargets].shape[0]);
  if (targets.empty()) return {.rows = rows * bounds.expected().trained_fraction};
  return {.rows = static_cast<double>(rows_with_work(targets))};
}

// Bytes of the rows of a matrix that carry no loss and are not read.
double skipped_bytes(const Tensor& matrix, const Extent& extent) {
  return static_cast<double>(matrix.bytes()) - row_bytes(matrix, extent.rows);
}

// The sizes of the chunks for the rows of an extent.
template <typename Struct>
std::vector<int64_t> chunks_of(const Struct& loss, const OperationView& view,
                               const Extent& extent) {
  return chunk_sizes(loss.chunks.algorithm, loss.chunks.rows, view[Struct::kTargets].shape[0],
                     static_cast<int64_t>(extent.rows));
}

// The cost of a linear loss that has `products` products and `flops` other operations for each
// logit. All rows of its chunks are computed, and each chunk reads the weight again. `sums`: the
// bytes of the weight gradient's running sums, which each chunk except the first reads and writes
// again.
template <typename Struct>
Cost cost_of_chunks(const Struct& loss, const OperationView& view, const Extent& extent,
                    double products, double flops, double sums = 0) {
  const Tensor& hidden = view[Struct::kHidden];
  const Tensor& weight = view[Struct::kWeight];
  Cost cost;
  cost.bytes = operand_bytes(view) - skipped_bytes(hidden, extent);
  double rows = extent.rows;
  if (loss.chunks.algorithm != LossAlgorithm::whole) {
    const std::vector<int64_t> chunks = chunks_of(loss, view, extent);
    rows = std::max(rows, std::accumulate(chunks.begin(), chunks.end(), 0.0));
    const double again = std::max(0.0, static_cast<double>(chunks.size()) - 1);
    cost.bytes += again * (static_cast<double>(weight.bytes()) + 2.0 * sums);
    cost.chunk_launches =
        static_cast<double>(loss.chunk_launches) * static_cast<double>(chunks.size());
  }
  const double logits = rows * static_cast<double>(weight.shape[0]);
  cost.flops = logits * (2.0 * static_cast<double>(hidden.shape[1]) * products + flops);
  return cost;
}

template <typename Struct>
void check_logits(const Struct& loss, ShapeRule& rule) {
  rule.require(loss.chunks.rows >= 0, "has a negative chunk_rows");
  rule.require(loss.products.block_columns >= 0, "has a negative block_columns");
  rule.require(std::isfinite(loss.scale), "has a scale that is not finite");
  rule.require(std::isfinite(loss.softcap) && loss.softcap >= 0.0F,
               "has a softcap that is negative or not finite");
  rule.require(!loss.bias || loss.scale == 1.0F, "has a bias and a scale");
  rule.require(!loss.gain || loss.scale == 1.0F, "has a gain and a scale");
  check_smoothing(loss, rule);
}

// Operations per logit for scale or bias, gain, and cap (counted as in the kind softcap).
template <typename Struct>
double cap_flops(const Struct& loss) {
  return (loss.scale != 1.0F || loss.bias ? 1.0 : 0.0) + (loss.gain ? 1.0 : 0.0) +
         (loss.softcap > 0.0F ? 6.0 : 0.0);
}

// The sum of a row's logits, and what each logit's gradient has less.
template <typename Struct>
double smoothing_flops(const Struct& loss) {
  return loss.smoothing > 0.0F ? 1.0 : 0.0;
}

// Operations per logit of the training form only: gradients through the cap and the gain, and sums
// of rows.
double gradient_flops(const LinearCrossEntropyTrain& loss) {
  return smoothing_flops(loss) + (loss.softcap > 0.0F ? 4.0 : 0.0) + (loss.gain ? 1.0 : 0.0) +
         (loss.bias_gradient ? 1.0 : 0.0) + (loss.gain_gradient ? 2.0 : 0.0);
}

std::string shape_error(const CrossEntropy& loss, const OperationView& view) {
  ShapeRule rule(view);
  const Tensor& logits = view[CrossEntropy::kLogits];
  rule.rank(CrossEntropy::kLogits, 2);
  rule.same_type({CrossEntropy::kLogits});
  rule.index(CrossEntropy::kTargets, Shape{logits.shape[0]});
  check_smoothing(loss, rule);
  check_inverse_tokens(loss, view, rule);
  check_losses(loss, logits.shape[0], rule);
  return rule.error();
}

std::string shape_error(const CrossEntropyGrad& grad, const OperationView& view) {
  ShapeRule rule(view);
  const Tensor& logits = view[CrossEntropyGrad::kLogits];
  rule.rank(CrossEntropyGrad::kLogits, 2);
  rule.index(CrossEntropyGrad::kTargets, Shape{logits.shape[0]});
  check_smoothing(grad, rule);
  check_inverse_tokens(grad, view, rule);
  rule.shape(CrossEntropyGrad::kDLogits, logits.shape);
  rule.mixed_types({CrossEntropyGrad::kLogits, CrossEntropyGrad::kDLogits});
  return rule.error();
}

std::string shape_error(const LinearCrossEntropy& loss, const OperationView& view) {
  ShapeRule rule(view);
  check_logits(loss, rule);
  check_linear_reads(loss, view, rule);
  check_losses(loss, view[LinearCrossEntropy::kHidden].shape[0], rule);
  return rule.error();
}

std::string shape_error(const LinearCrossEntropyTrain& loss, const OperationView& view) {
  ShapeRule rule(view);
  check_logits(loss, rule);
  rule.require(!loss.accumulate || loss.weight_gradient,
               "accumulates a weight gradient that it does not make");
  rule.require(loss.products.main.dweight_step >= 0 && loss.products.rest.dweight_step >= 0,
               "has a negative dweight_step");
  rule.require(loss.bias || !loss.bias_gradient, "makes the gradient of a bias that it has not");
  rule.require(loss.gain || !loss.gain_gradient, "makes the gradient of a gain that it has not");
  check_linear_reads(loss, view, rule);
  const Tensor& hidden = view[LinearCrossEntropyTrain::kHidden];
  check_losses(loss, hidden.shape[0], rule);
  rule.shape(LinearCrossEntropyTrain::kDHidden, hidden.shape);
  rule.mixed_types({LinearCrossEntropyTrain::kHidden, LinearCrossEntropyTrain::kDHidden});
  if (loss.weight_gradient) {
    rule.shape(LinearCrossEntropyTrain::kDWeight, view[LinearCrossEntropyTrain::kWeight].shape);
    rule.mixed_types({LinearCrossEntropyTrain::kHidden, LinearCrossEntropyTrain::kDWeight});
  }
  using Loss = LinearCrossEntropyTrain;
  const auto check_vector = [&](const Operand<Loss>& gradient, const Operand<Loss>& vector) {
    rule.shape(gradient, view[vector].shape);
    rule.mixed_types({Loss::kHidden, gradient});
  };
  if (loss.bias && loss.bias_gradient) check_vector(Loss::kDBias, Loss::kBias);
  if (loss.gain && loss.gain_gradient) check_vector(Loss::kDGain, Loss::kGain);
  return rule.error();
}

// The cost of a loss whose logits are given: `flops` for each logit of a row that carries loss.
Cost cost_of_rows(const Tensor& logits, double flops, const OperationView& view,
                  const Extent& extent) {
  return {extent.rows * static_cast<double>(logits.shape[1]) * flops,
          operand_bytes(view) - skipped_bytes(logits, extent)};
}

Cost cost(const CrossEntropy& loss, const OperationView& view, const Extent& extent) {
  return cost_of_rows(view[CrossEntropy::kLogits], kLossFlops + smoothing_flops(loss), view,
                      extent);
}

Cost cost(const CrossEntropyGrad& grad, const OperationView& view, const Extent& extent) {
  return cost_of_rows(view[CrossEntropyGrad::kLogits], kGradFlops + smoothing_flops(grad), view,
                      extent);
}

Cost cost(const LinearCrossEntropy& loss, const OperationView& view, const Extent& extent) {
  return cost_of_chunks(loss, view, extent, 1,
                        kLossFlops + cap_flops(loss) + smoothing_flops(loss));
}

// Products per logit: the logit itself, the gradient of hidden, and the gradient of the weight, for
// which an online loss computes the logit again.
double products_of(const LinearCrossEntropyTrain& loss) {
  if (!loss.weight_gradient) return 2;
  return loss.chunks.algorithm == LossAlgorithm::online ? 4 : 3;
}

// The f32 sums that a training loss in blocks of columns, or in steps of rows, reads and writes
// again: the gradient of hidden for each block after the first, that of the weight for each step
// after the first.
double bytes_of_parts(const LinearCrossEntropyTrain& loss, const OperationView& view,
                      const Extent& extent) {
  const Shape& weight = view[LinearCrossEntropyTrain::kWeight].shape;
  const int64_t rest =
      loss.products.block_columns > 0 ? weight[0] % loss.products.block_columns : 0;
  const int64_t blocks_again = later_steps(weight[0], loss.products.block_columns);
  double elements = 0;
  for (const int64_t rows : chunks_of(loss, view, extent)) {
    elements += static_cast<double>(blocks_again * rows * weight[1]);
    if (!loss.weight_gradient) continue;
    elements += static_cast<double>((weight[0] - rest) *
                                        later_steps(rows, loss.products.main.dweight_step) +
                                    rest * later_steps(rows, loss.products.rest.dweight_step)) *
                static_cast<double>(weight[1]);
  }
  return 2.0 * sizeof(float) * elements;
}

Cost cost(const LinearCrossEntropyTrain& loss, const OperationView& view, const Extent& extent) {
  Cost cost = cost_of_chunks(
      loss, view, extent, products_of(loss),
      kLossFlops + kGradFlops + cap_flops(loss) + smoothing_flops(loss) + gradient_flops(loss),
      loss.weight_gradient ? static_cast<double>(view[LinearCrossEntropyTrain::kDWeight].bytes())
                           : 0.0);
  cost.bytes += bytes_of_parts(loss, view, extent);
  // An online loss makes the mean of the weight's rows first.
  if (loss.smoothing > 0.0F && loss.chunks.algorithm == LossAlgorithm::online)
    cost.bytes += static_cast<double>(view[LinearCrossEntropyTrain::kWeight].bytes());
  return cost;
}

// `loss` is the root of the backward pass: its gradient is 1.
void differentiate(const CrossEntropy& loss, const Operation& operation, Tape& tape) {
  const TensorId logits = id_of(operation, CrossEntropy::kLogits);
  if (!tape.wants(logits)) return;
  tape.emit(CrossEntropyGrad{loss.smoothing}, operation.reads, {tape.contribute(logits)});
}

void differentiate(const LinearCrossEntropy& loss, const Operation& operation, Tape& tape) {
  differentiate_linear_loss(loss, operation, tape);
}

template <typename Struct>
RateKey loss_key(const Struct& loss, const OperationView& view, const Extent& extent) {
  const Shape& weight = view[Struct::kWeight].shape;
  RateKey key{.form = typed_form(view)};
  key.form.online = loss.chunks.algorithm == LossAlgorithm::online;
  if (!key.form.online) key.form.algorithm = rated_as(loss.products.main.logits);
  key.shape = {std::max(1.0, extent.rows), rate_size(weight[0]), rate_size(weight[1])};
  key.unit = Work::flops;
  key.multiplies = view[Struct::kHidden].dtype;
  return key;
}

WorkList work(const CrossEntropy& loss, const OperationView& view, const BatchBounds& bounds) {
  return {.extent = rows_with_loss(loss, view, bounds)};
}
WorkList work(const CrossEntropyGrad& grad, const OperationView& view, const BatchBounds& bounds) {
  return {.extent = rows_with_loss(grad, view, bounds)};
}

// Each chunk is a piece of work.
template <typename Struct>
WorkList work_in_chunks(const Struct& loss, const OperationView& view, const BatchBounds& bounds) {
  const Extent rows = rows_with_loss(loss, view, bounds);
  return {.extent = rows, .pieces = chunks_of(loss, view, rows)};
}
WorkList work(const LinearCrossEntropy& loss, const OperationView& view,
              const BatchBounds& bounds) {
  return work_in_chunks(loss, view, bounds);
}
WorkList work(const LinearCrossEntropyTrain& loss, const OperationView& view,
              const BatchBounds& bounds) {
  return work_in_chunks(loss, view, bounds);
}

RateKey rate_key(const LinearCrossEntropy& loss, const OperationView& view, const Extent& extent) {
  return loss_key(loss, view, extent);
}

RateKey rate_key(const LinearCrossEntropyTrain& loss, const OperationView& view,
                 const Extent& extent) {
  return loss_key(loss, view, extent);
}

}  // namespace

SNUG_DEFINE_KIND(CrossEntropy, .differentiate = differentiate, .work = work);
SNUG_DEFINE_KIND(CrossEntropyGrad, .work = work);
SNUG_DEFINE_KIND(LinearCrossEntropy, .differentiate = differentiate, .expand = expand_loss,
                 .work = work, .rate_key = rate_key);
SNUG_DEFINE_KIND(LinearCrossEntropyTrain, .expand = expand_loss, .work = work,
                 .rate_key = rate_key);

}  // namespace snug::program
