#include "program/kinds/cross_entropy.h"

#include <fmt/format.h>

#include "program/builder.h"
#include "program/kinds/overloads.h"
#include "program/kinds/shape_rule.h"
#include "program/kinds/traffic.h"
#include "program/tape.h"

namespace snug::program {
namespace {

// Operations a logit beside the products: maximum, exponential (2), sum; the gradient's division
// and scale.
constexpr double kLossFlops = 4;
constexpr double kGradFlops = 6;

// The reads that all linear forms share: hidden, weight, targets, inverse_tokens.
void check_linear_reads(const OperationView& view, ShapeRule& rule) {
  const Tensor& hidden = view.read(0);
  const Tensor& weight = view.read(1);
  rule.rank({"hidden", hidden}, 2);
  rule.rank({"weight", weight}, 2);
  rule.shape({"weight", weight}, Shape{weight.shape[0], hidden.shape[1]});
  rule.mixed_types({{"hidden", hidden}, {"weight", weight}});
  rule.index({"targets", view.read(2)}, Shape{hidden.shape[0]});
  rule.measure({"inverse_tokens", view.read(3)}, Shape{1});
}

void check_losses(const OperationView& view, int64_t tokens, ShapeRule& rule) {
  rule.measure({"losses", view.write(0)}, Shape{tokens});
  rule.measure({"loss", view.write(1)}, Shape{1});
}

// Rows that carry loss, times the logits of a row.
double trained_logits(const OperationView& view, const Load& load) {
  const Tensor& hidden = view.read(0);
  const Tensor& weight = view.read(1);
  return static_cast<double>(hidden.shape[0]) * load.trained_fraction *
         static_cast<double>(weight.shape[0]);
}

// Bytes of rows without loss, which are not read.
double skipped_bytes(const OperationView& view, const Load& load) {
  return (1.0 - load.trained_fraction) * static_cast<double>(view.read(0).bytes());
}

// A (tokens, vocab) tensor of the expansion. Logits leave the product in f32, as a chunk of them
// does in the fused kind; f64 programs keep f64.
TensorId add_logits(const OperationView& view, Builder& builder, const char* suffix) {
  const Tensor& hidden = view.read(0);
  Tensor logits;
  logits.name = fmt::format("{}.{}", view.write(0).name, suffix);
  logits.shape = Shape{hidden.shape[0], view.read(1).shape[0]};
  logits.dtype = hidden.dtype == DType::f64 ? DType::f64 : DType::f32;
  logits.role = Role::logits;
  logits.layer = view.operation.layer;
  return builder.add(std::move(logits));
}

Matmul linear() {
  Matmul matmul;
  matmul.transpose_b = true;
  return matmul;
}

}  // namespace

std::string shape_error(const CrossEntropy&, const OperationView& view) {
  ShapeRule rule(view);
  if (!rule.counts(3, 2)) return rule.error();
  const Tensor& logits = view.read(0);
  rule.rank({"logits", logits}, 2);
  rule.same_type({{"logits", logits}});
  rule.index({"targets", view.read(1)}, Shape{logits.shape[0]});
  rule.measure({"inverse_tokens", view.read(2)}, Shape{1});
  check_losses(view, logits.shape[0], rule);
  return rule.error();
}

std::string shape_error(const CrossEntropyGrad&, const OperationView& view) {
  ShapeRule rule(view);
  if (!rule.counts(3, 1)) return rule.error();
  const Tensor& logits = view.read(0);
  rule.rank({"logits", logits}, 2);
  rule.index({"targets", view.read(1)}, Shape{logits.shape[0]});
  rule.measure({"inverse_tokens", view.read(2)}, Shape{1});
  rule.shape({"dlogits", view.write(0)}, logits.shape);
  rule.mixed_types({{"logits", logits}, {"dlogits", view.write(0)}});
  return rule.error();
}

std::string shape_error(const LinearCrossEntropy& loss, const OperationView& view) {
  ShapeRule rule(view);
  rule.require(loss.chunk_rows >= 0, "has a negative chunk_rows");
  if (!rule.counts(4, 2)) return rule.error();
  check_linear_reads(view, rule);
  check_losses(view, view.read(0).shape[0], rule);
  return rule.error();
}

std::string shape_error(const LinearCrossEntropyTrain& loss, const OperationView& view) {
  ShapeRule rule(view);
  rule.require(loss.chunk_rows >= 0, "has a negative chunk_rows");
  rule.require(!loss.accumulate || loss.weight_gradient,
               "accumulates a weight gradient that it does not make");
  const bool writes_dweight = loss.weight_gradient && !loss.accumulate;
  if (!rule.counts(4, writes_dweight ? 4 : 3, loss.accumulate ? 1 : 0)) return rule.error();
  check_linear_reads(view, rule);
  const Tensor& hidden = view.read(0);
  check_losses(view, hidden.shape[0], rule);
  rule.shape({"dhidden", view.write(2)}, hidden.shape);
  rule.mixed_types({{"hidden", hidden}, {"dhidden", view.write(2)}});
  if (loss.weight_gradient) {
    const Tensor& dweight = loss.accumulate ? view.update(0) : view.write(3);
    rule.shape({"dweight", dweight}, view.read(1).shape);
    rule.mixed_types({{"hidden", hidden}, {"dweight", dweight}});
  }
  return rule.error();
}

Cost cost(const CrossEntropy&, const OperationView& view, const Load&) {
  return streaming_cost(view, view.read(0).shape.elements(), kLossFlops);
}

Cost cost(const CrossEntropyGrad&, const OperationView& view, const Load&) {
  return streaming_cost(view, view.read(0).shape.elements(), kGradFlops);
}

Cost cost(const LinearCrossEntropy&, const OperationView& view, const Load& load) {
  const auto width = static_cast<double>(view.read(0).shape[1]);
  return {trained_logits(view, load) * (2.0 * width + kLossFlops),
          operand_bytes(view) - skipped_bytes(view, load)};
}

Cost cost(const LinearCrossEntropyTrain& loss, const OperationView& view, const Load& load) {
  const auto width = static_cast<double>(view.read(0).shape[1]);
  const double products = loss.weight_gradient ? 3 : 2;
  return {trained_logits(view, load) * (2.0 * width * products + kLossFlops + kGradFlops),
          operand_bytes(view) - skipped_bytes(view, load)};
}

// `loss` is the root: its own gradient is one.
void differentiate(const CrossEntropy&, const Operation& operation, Tape& tape) {
  const TensorId logits = operation.reads[0];
  if (!tape.wants(logits)) return;
  tape.emit(CrossEntropyGrad{}, operation.reads, {tape.contribute(logits)});
}

void differentiate(const LinearCrossEntropy& loss, const Operation& operation, Tape& tape) {
  const TensorId hidden = operation.reads[0];
  const TensorId weight = operation.reads[1];
  const Tensor input = tape.program().tensor(hidden);  // a copy: the table grows
  LinearCrossEntropyTrain train;
  train.chunk_rows = loss.chunk_rows;
  train.weight_gradient = tape.wants(weight);
  std::vector<TensorId> writes = operation.writes;  // losses, loss
  writes.push_back(tape.wants(hidden) ? tape.contribute(hidden)
                                      : tape.temporary("dhidden", input.shape, input.dtype));
  if (train.weight_gradient) writes.push_back(tape.contribute(weight));
  tape.emit(train, operation.reads, std::move(writes));
}

void expand(const LinearCrossEntropy&, const OperationView& view, Builder& builder) {
  const std::vector<TensorId> reads = view.operation.reads;
  const std::vector<TensorId> writes = view.operation.writes;
  const TensorId logits = add_logits(view, builder, "logits");
  builder.emit(linear(), {reads[0], reads[1]}, {logits});
  builder.emit(CrossEntropy{}, {logits, reads[2], reads[3]}, writes);
}

void expand(const LinearCrossEntropyTrain& loss, const OperationView& view, Builder& builder) {
  // Copies: the view may look at the builder's own program.
  const Operation operation = view.operation;
  const std::vector<TensorId>& reads = operation.reads;
  const std::vector<TensorId>& writes = operation.writes;
  const TensorId logits = add_logits(view, builder, "logits");
  const TensorId dlogits = add_logits(view, builder, "dlogits");
  builder.emit(linear(), {reads[0], reads[1]}, {logits});
  builder.emit(CrossEntropy{}, {logits, reads[2], reads[3]}, {writes[0], writes[1]});
  builder.emit(CrossEntropyGrad{}, {logits, reads[2], reads[3]}, {dlogits});
  builder.emit(Matmul{}, {dlogits, reads[1]}, {writes[2]});
  if (!loss.weight_gradient) return;
  Matmul weight_product;
  weight_product.transpose_a = true;
  weight_product.accumulate = loss.accumulate;
  if (loss.accumulate)
    builder.emit(weight_product, {dlogits, reads[0]}, {}, {operation.updates[0]});
  else
    builder.emit(weight_product, {dlogits, reads[0]}, {writes[3]});
}

}  // namespace snug::program
