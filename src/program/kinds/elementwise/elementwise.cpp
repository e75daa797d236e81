#include "program/kinds/elementwise/elementwise.h"

#include <cmath>

#include "base/error.h"
#include "program/ir/tape.h"
#include "program/kinds/functions.h"
#include "program/kinds/shape_rule.h"
#include "program/kinds/traffic.h"

namespace snug::program {
namespace {

std::string shape_error(const Add&, const OperationView& view) {
  ShapeRule rule(view);
  rule.shape(Add::kB, view[Add::kA].shape);
  rule.shape(Add::kC, view[Add::kA].shape);
  rule.mixed_types({Add::kA, Add::kB, Add::kC});
  return rule.error();
}

std::string shape_error(const Accumulate& accumulate, const OperationView& view) {
  ShapeRule rule(view);
  rule.shape(Accumulate::kY, view[Accumulate::kX].shape);
  rule.mixed_types({Accumulate::kX, Accumulate::kY});
  if (accumulate.stochastic) {
    rule.index(Accumulate::kRandom, Shape{2});
    rule.type(Accumulate::kY, DType::bf16);
  }
  return rule.error();
}

std::string shape_error(const AddBias&, const OperationView& view) {
  ShapeRule rule(view);
  const Tensor& x = view[AddBias::kX];
  rule.rank(AddBias::kX, 2);
  rule.shape(AddBias::kBias, Shape{x.shape[1]});
  rule.shape(AddBias::kY, x.shape);
  rule.mixed_types({AddBias::kX, AddBias::kBias, AddBias::kY});
  return rule.error();
}

std::string shape_error(const SumRows&, const OperationView& view) {
  ShapeRule rule(view);
  const Tensor& x = view[SumRows::kX];
  rule.rank(SumRows::kX, 2);
  rule.shape(SumRows::kY, Shape{x.shape[1]});
  rule.mixed_types({SumRows::kX, SumRows::kY});
  return rule.error();
}

std::string shape_error(const Scale& scale, const OperationView& view) {
  ShapeRule rule(view);
  rule.require(std::isfinite(scale.factor), "has a factor that is not finite");
  const Tensor& x = view[Scale::kX];
  rule.shape(Scale::kY, x.shape);
  rule.mixed_types({Scale::kX, Scale::kY});
  return rule.error();
}

std::string shape_error(const Dropout& dropout, const OperationView& view) {
  ShapeRule rule(view);
  rule.require(dropout.probability >= 0.0F && dropout.probability < 1.0F,
               "has a probability outside [0, 1)");
  rule.require(dropout.row_length > 0, "has a row_length that is not positive");
  const Tensor& x = view[Dropout::kX];
  rule.rank(Dropout::kX, 2);
  rule.index(Dropout::kRandom, Shape{2});
  rule.shape(Dropout::kY, x.shape);
  rule.same_type({Dropout::kX, Dropout::kY});
  return rule.error();
}

std::string shape_error(const Cast&, const OperationView& view) {
  ShapeRule rule(view);
  rule.shape(Cast::kY, view[Cast::kX].shape);
  rule.require(is_float(view[Cast::kX].dtype) && is_float(view[Cast::kY].dtype),
               "casts an element type that is not floating point");
  return rule.error();
}

std::string shape_error(const Zeros&, const OperationView& view) {
  ShapeRule rule(view);
  rule.rank(Zeros::kY, 2);
  rule.same_type({Zeros::kY});
  return rule.error();
}

Cost cost(const Add&, const OperationView& view, const Extent&) {
  return streaming_cost(view, view[Add::kC].shape.elements(), 1);
}

Cost cost(const Accumulate&, const OperationView& view, const Extent&) {
  return streaming_cost(view, view[Accumulate::kY].shape.elements(), 1);
}

Cost cost(const AddBias&, const OperationView& view, const Extent&) {
  return streaming_cost(view, view[AddBias::kY].shape.elements(), 1);
}

Cost cost(const SumRows&, const OperationView& view, const Extent&) {
  return streaming_cost(view, view[SumRows::kX].shape.elements(), 1);
}

Cost cost(const Scale&, const OperationView& view, const Extent&) {
  return streaming_cost(view, view[Scale::kY].shape.elements(), 1);
}

// Operations per element: a multiplication and a comparison (2). Generating random words is part of
// the kind's measured rate.
Cost cost(const Dropout&, const OperationView& view, const Extent&) {
  return streaming_cost(view, view[Dropout::kY].shape.elements(), 2);
}

Cost cost(const Cast&, const OperationView& view, const Extent&) {
  return streaming_cost(view, view[Cast::kY].shape.elements(), 0);
}

Cost cost(const Zeros&, const OperationView& view, const Extent&) {
  return streaming_cost(view, view[Zeros::kY].shape.elements(), 0);
}

void differentiate(const Add&, const Operation& operation, Tape& tape) {
  const TensorId dc = tape.gradient(id_of(operation, Add::kC));
  if (dc == kNone) return;
  for (const TensorId input : operation.reads)
    if (tape.wants(input)) tape.pass_through(input, dc);
}

void differentiate(const AddBias&, const Operation& operation, Tape& tape) {
  const TensorId dy = tape.gradient(id_of(operation, AddBias::kY));
  if (dy == kNone) return;
  const TensorId x = id_of(operation, AddBias::kX);
  const TensorId bias = id_of(operation, AddBias::kBias);
  if (tape.wants(bias)) tape.emit(SumRows{}, {dy}, {tape.contribute(bias)});
  if (tape.wants(x)) tape.pass_through(x, dy);
}

void differentiate(const Scale& scale, const Operation& operation, Tape& tape) {
  const TensorId dy = tape.gradient(id_of(operation, Scale::kY));
  const TensorId x = id_of(operation, Scale::kX);
  if (dy == kNone || !tape.wants(x)) return;
  tape.emit(scale, {dy}, {tape.contribute(x)});
}

// The mask is a function of the attributes and `random`: the same operation on dy applies it again.
void differentiate(const Dropout& dropout, const Operation& operation, Tape& tape) {
  const TensorId dy = tape.gradient(id_of(operation, Dropout::kY));
  const TensorId x = id_of(operation, Dropout::kX);
  if (dy == kNone || !tape.wants(x)) return;
  tape.emit(dropout, {dy, id_of(operation, Dropout::kRandom)}, {tape.contribute(x)});
}

void differentiate(const Cast&, const Operation& operation, Tape& tape) {
  const TensorId dy = tape.gradient(id_of(operation, Cast::kY));
  const TensorId x = id_of(operation, Cast::kX);
  if (dy == kNone || !tape.wants(x)) return;
  tape.emit(Cast{}, {dy}, {tape.contribute(x)});
}

}  // namespace

SNUG_DEFINE_KIND(Add, .differentiate = differentiate);
SNUG_DEFINE_KIND(Accumulate);
SNUG_DEFINE_KIND(AddBias, .differentiate = differentiate);
SNUG_DEFINE_KIND(SumRows);
SNUG_DEFINE_KIND(Scale, .differentiate = differentiate);
SNUG_DEFINE_KIND(Dropout, .differentiate = differentiate);
SNUG_DEFINE_KIND(Cast, .differentiate = differentiate);
SNUG_DEFINE_KIND(Zeros);

}  // namespace snug::program
