#include "program/kinds/elementwise.h"

#include "base/error.h"
#include "program/kinds/overloads.h"
#include "program/kinds/shape_rule.h"
#include "program/kinds/traffic.h"
#include "program/tape.h"

namespace snug::program {

std::string shape_error(const Add&, const OperationView& view) {
  ShapeRule rule(view);
  if (!rule.counts(2, 1)) return rule.error();
  rule.shape({"b", view.read(1)}, view.read(0).shape);
  rule.shape({"c", view.write(0)}, view.read(0).shape);
  rule.mixed_types({{"a", view.read(0)}, {"b", view.read(1)}, {"c", view.write(0)}});
  return rule.error();
}

std::string shape_error(const Accumulate& accumulate, const OperationView& view) {
  ShapeRule rule(view);
  if (!rule.counts(accumulate.stochastic ? 2 : 1, 0, 1)) return rule.error();
  rule.shape({"y", view.update(0)}, view.read(0).shape);
  rule.mixed_types({{"x", view.read(0)}, {"y", view.update(0)}});
  if (accumulate.stochastic) {
    rule.index({"random", view.read(1)}, Shape{2});
    rule.type({"y", view.update(0)}, DType::bf16);
  }
  return rule.error();
}

std::string shape_error(const AddBias&, const OperationView& view) {
  ShapeRule rule(view);
  if (!rule.counts(2, 1)) return rule.error();
  const Tensor& x = view.read(0);
  rule.rank({"x", x}, 2);
  rule.shape({"bias", view.read(1)}, Shape{x.shape[1]});
  rule.shape({"y", view.write(0)}, x.shape);
  rule.mixed_types({{"x", x}, {"bias", view.read(1)}, {"y", view.write(0)}});
  return rule.error();
}

std::string shape_error(const SumRows& sum, const OperationView& view) {
  ShapeRule rule(view);
  if (!rule.counts(1, sum.accumulate ? 0 : 1, sum.accumulate ? 1 : 0)) return rule.error();
  const Tensor& x = view.read(0);
  const Tensor& y = sum.accumulate ? view.update(0) : view.write(0);
  rule.rank({"x", x}, 2);
  rule.shape({"y", y}, Shape{x.shape[1]});
  rule.mixed_types({{"x", x}, {"y", y}});
  return rule.error();
}

std::string shape_error(const Dropout& dropout, const OperationView& view) {
  ShapeRule rule(view);
  rule.require(dropout.probability >= 0.0F && dropout.probability < 1.0F,
               "has a probability outside [0, 1)");
  rule.require(dropout.row_length > 0, "has a row_length that is not positive");
  if (!rule.counts(2, 1)) return rule.error();
  const Tensor& x = view.read(0);
  rule.rank({"x", x}, 2);
  rule.index({"random", view.read(1)}, Shape{2});
  rule.shape({"y", view.write(0)}, x.shape);
  rule.same_type({{"x", x}, {"y", view.write(0)}});
  return rule.error();
}

std::string shape_error(const Cast&, const OperationView& view) {
  ShapeRule rule(view);
  if (!rule.counts(1, 1)) return rule.error();
  rule.shape({"y", view.write(0)}, view.read(0).shape);
  rule.require(is_float(view.read(0).dtype) && is_float(view.write(0).dtype),
               "casts an element type that is not floating point");
  return rule.error();
}

Cost cost(const Add&, const OperationView& view, const Load&) {
  return streaming_cost(view, view.write(0).shape.elements(), 1);
}

Cost cost(const Accumulate&, const OperationView& view, const Load&) {
  return streaming_cost(view, view.update(0).shape.elements(), 1);
}

Cost cost(const AddBias&, const OperationView& view, const Load&) {
  return streaming_cost(view, view.write(0).shape.elements(), 1);
}

Cost cost(const SumRows&, const OperationView& view, const Load&) {
  return streaming_cost(view, view.read(0).shape.elements(), 1);
}

// A multiplication and a comparison; the random words are counted in the rate of the kind.
Cost cost(const Dropout&, const OperationView& view, const Load&) {
  return streaming_cost(view, view.write(0).shape.elements(), 2);
}

Cost cost(const Cast&, const OperationView& view, const Load&) {
  return streaming_cost(view, view.write(0).shape.elements(), 0);
}

void differentiate(const Add&, const Operation& operation, Tape& tape) {
  const TensorId dc = tape.gradient(operation.writes[0]);
  if (dc == kNone) return;
  for (const TensorId input : operation.reads)
    if (tape.wants(input)) tape.pass_through(input, dc);
}

void differentiate(const AddBias&, const Operation& operation, Tape& tape) {
  const TensorId dy = tape.gradient(operation.writes[0]);
  if (dy == kNone) return;
  const TensorId x = operation.reads[0];
  const TensorId bias = operation.reads[1];
  if (tape.wants(bias)) tape.emit(SumRows{}, {dy}, {tape.contribute(bias)});
  if (tape.wants(x)) tape.pass_through(x, dy);
}

// The mask is a function of the attributes and `random`: the same operation on dy applies it again.
void differentiate(const Dropout& dropout, const Operation& operation, Tape& tape) {
  const TensorId dy = tape.gradient(operation.writes[0]);
  const TensorId x = operation.reads[0];
  if (dy == kNone || !tape.wants(x)) return;
  tape.emit(dropout, {dy, operation.reads[1]}, {tape.contribute(x)});
}

void differentiate(const Cast&, const Operation& operation, Tape& tape) {
  const TensorId dy = tape.gradient(operation.writes[0]);
  const TensorId x = operation.reads[0];
  if (dy == kNone || !tape.wants(x)) return;
  tape.emit(Cast{}, {dy}, {tape.contribute(x)});
}

InPlacePairs in_place_pairs(const Add&) { return {{0, 0}, {0, 1}}; }
InPlacePairs in_place_pairs(const AddBias&) { return {{0, 0}}; }
InPlacePairs in_place_pairs(const Dropout&) { return {{0, 0}}; }

}  // namespace snug::program
