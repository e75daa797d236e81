#include "program/kinds/elementwise/gelu.h"

#include "program/ir/tape.h"
#include "program/kinds/functions.h"
#include "program/kinds/shape_rule.h"
#include "program/kinds/traffic.h"

namespace snug::program {
namespace {

std::string shape_error(const Gelu&, const OperationView& view) {
  ShapeRule rule(view);
  const Tensor& x = view[Gelu::kX];
  rule.rank(Gelu::kX, 2);
  rule.shape(Gelu::kY, x.shape);
  rule.mixed_types({Gelu::kX, Gelu::kY});
  return rule.error();
}

std::string shape_error(const GeluGrad&, const OperationView& view) {
  ShapeRule rule(view);
  const Tensor& x = view[GeluGrad::kX];
  rule.rank(GeluGrad::kX, 2);
  rule.shape(GeluGrad::kDY, x.shape);
  rule.shape(GeluGrad::kDX, x.shape);
  rule.mixed_types({GeluGrad::kX, GeluGrad::kDY, GeluGrad::kDX});
  return rule.error();
}

// Operations per element: the distribution function or its approximation (4), and a product (1).
Cost cost(const Gelu&, const OperationView& view, const Extent&) {
  return streaming_cost(view, view[Gelu::kY].shape.elements(), 5);
}

// Operations per element: the distribution function or its approximation (4), its slope (3), their
// sum (2) and the product with dy (1).
Cost cost(const GeluGrad&, const OperationView& view, const Extent&) {
  return streaming_cost(view, view[GeluGrad::kDX].shape.elements(), 10);
}

void differentiate(const Gelu& gelu, const Operation& operation, Tape& tape) {
  const TensorId dy = tape.gradient(id_of(operation, Gelu::kY));
  const TensorId x = id_of(operation, Gelu::kX);
  if (dy == kNone || !tape.wants(x)) return;
  tape.emit(GeluGrad{gelu.tanh}, {dy, x}, {tape.contribute(x)});
}

}  // namespace

SNUG_DEFINE_KIND(Gelu, .differentiate = differentiate);
SNUG_DEFINE_KIND(GeluGrad);

}  // namespace snug::program
