#include "program/kinds/elementwise/relu.h"

#include "program/ir/tape.h"
#include "program/kinds/functions.h"
#include "program/kinds/shape_rule.h"
#include "program/kinds/traffic.h"

namespace snug::program {
namespace {

std::string shape_error(const Relu&, const OperationView& view) {
  ShapeRule rule(view);
  const Tensor& x = view[Relu::kX];
  rule.rank(Relu::kX, 2);
  rule.shape(Relu::kY, x.shape);
  rule.mixed_types({Relu::kX, Relu::kY});
  return rule.error();
}

std::string shape_error(const ReluGrad&, const OperationView& view) {
  ShapeRule rule(view);
  const Tensor& y = view[ReluGrad::kY];
  rule.rank(ReluGrad::kY, 2);
  rule.shape(ReluGrad::kDY, y.shape);
  rule.shape(ReluGrad::kDX, y.shape);
  rule.mixed_types({ReluGrad::kY, ReluGrad::kDY, ReluGrad::kDX});
  return rule.error();
}

// Operations per element: a comparison (1).
Cost cost(const Relu&, const OperationView& view, const Extent&) {
  return streaming_cost(view, view[Relu::kY].shape.elements(), 1);
}

Cost cost(const ReluGrad&, const OperationView& view, const Extent&) {
  return streaming_cost(view, view[ReluGrad::kDX].shape.elements(), 1);
}

void differentiate(const Relu&, const Operation& operation, Tape& tape) {
  const TensorId y = id_of(operation, Relu::kY);
  const TensorId dy = tape.gradient(y);
  const TensorId x = id_of(operation, Relu::kX);
  if (dy == kNone || !tape.wants(x)) return;
  tape.emit(ReluGrad{}, {dy, y}, {tape.contribute(x)});
}

}  // namespace

SNUG_DEFINE_KIND(Relu, .differentiate = differentiate);
SNUG_DEFINE_KIND(ReluGrad);

}  // namespace snug::program
