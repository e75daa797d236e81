#include "program/kinds/elementwise/clamped_swiglu.h"

#include <cmath>

#include "program/ir/tape.h"
#include "program/kinds/functions.h"
#include "program/kinds/shape_rule.h"
#include "program/kinds/traffic.h"

namespace snug::program {
namespace {

// Checks the attributes of the activation and of its gradient.
template <typename Struct>
void require_numbers(const Struct& swiglu, ShapeRule& rule) {
  rule.require(std::isfinite(swiglu.limit) && swiglu.limit > 0.0F,
               "has a limit that is not above 0");
  rule.require(std::isfinite(swiglu.alpha), "has an alpha that is not finite");
}

std::string shape_error(const ClampedSwiglu& swiglu, const OperationView& view) {
  ShapeRule rule(view);
  require_numbers(swiglu, rule);
  const Tensor& y = view[ClampedSwiglu::kY];
  rule.rank(ClampedSwiglu::kY, 2);
  rule.shape(ClampedSwiglu::kGateUp, Shape{y.shape.rows(), 2 * y.shape.columns()});
  rule.mixed_types({ClampedSwiglu::kGateUp, ClampedSwiglu::kY});
  return rule.error();
}

std::string shape_error(const ClampedSwigluGrad& grad, const OperationView& view) {
  ShapeRule rule(view);
  require_numbers(grad, rule);
  const Tensor& gate_up = view[ClampedSwigluGrad::kGateUp];
  const Tensor& dy = view[ClampedSwigluGrad::kDY];
  rule.rank(ClampedSwigluGrad::kDY, 2);
  rule.shape(ClampedSwigluGrad::kGateUp, Shape{dy.shape.rows(), 2 * dy.shape.columns()});
  rule.shape(ClampedSwigluGrad::kDGateUp, gate_up.shape);
  rule.mixed_types(
      {ClampedSwigluGrad::kGateUp, ClampedSwigluGrad::kDY, ClampedSwigluGrad::kDGateUp});
  return rule.error();
}

// Operations per element: two clamps (3), the sigmoid (4), a sum and two products (3).
Cost cost(const ClampedSwiglu&, const OperationView& view, const Extent&) {
  return streaming_cost(view, view[ClampedSwiglu::kY].shape.elements(), 10);
}

// Operations per element: the activation again without its last product (9), dup (3), and dgate =
// dy (u' + 1) s (1 + alpha g' (1 - s)) (7).
Cost cost(const ClampedSwigluGrad&, const OperationView& view, const Extent&) {
  return streaming_cost(view, view[ClampedSwigluGrad::kDY].shape.elements(), 18);
}

void differentiate(const ClampedSwiglu& swiglu, const Operation& operation, Tape& tape) {
  const TensorId dy = tape.gradient(id_of(operation, ClampedSwiglu::kY));
  const TensorId gate_up = id_of(operation, ClampedSwiglu::kGateUp);
  if (dy == kNone || !tape.wants(gate_up)) return;
  tape.emit(ClampedSwigluGrad{swiglu.limit, swiglu.alpha}, {dy, gate_up},
            {tape.contribute(gate_up)});
}

}  // namespace

SNUG_DEFINE_KIND(ClampedSwiglu, .differentiate = differentiate);
SNUG_DEFINE_KIND(ClampedSwigluGrad);

}  // namespace snug::program
