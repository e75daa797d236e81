#include "program/kinds/norm/rms_norm.h"

#include <cmath>

#include "program/ir/tape.h"
#include "program/kinds/functions.h"
#include "program/kinds/shape_rule.h"
#include "program/kinds/traffic.h"

namespace snug::program {
namespace {

std::string shape_error(const RmsNorm& norm, const OperationView& view) {
  ShapeRule rule(view);
  rule.require(norm.epsilon >= 0.0F, "has a negative epsilon");
  rule.require(std::isfinite(norm.offset), "has an offset that is not finite");
  const Tensor& x = view[RmsNorm::kX];
  rule.rank(RmsNorm::kX, 2);
  rule.shape(RmsNorm::kW, Shape{x.shape[1]});
  rule.shape(RmsNorm::kY, x.shape);
  rule.mixed_types({RmsNorm::kX, RmsNorm::kW, RmsNorm::kY});
  return rule.error();
}

std::string shape_error(const RmsNormGrad& norm, const OperationView& view) {
  ShapeRule rule(view);
  rule.require(norm.epsilon >= 0.0F, "has a negative epsilon");
  rule.require(std::isfinite(norm.offset), "has an offset that is not finite");
  rule.require(!norm.accumulate || norm.weight_gradient,
               "accumulates a weight gradient that it does not make");
  const Tensor& x = view[RmsNormGrad::kX];
  rule.rank(RmsNormGrad::kX, 2);
  rule.shape(RmsNormGrad::kDY, x.shape);
  rule.shape(RmsNormGrad::kW, Shape{x.shape[1]});
  rule.shape(RmsNormGrad::kDX, x.shape);
  rule.mixed_types({RmsNormGrad::kX, RmsNormGrad::kDY, RmsNormGrad::kW, RmsNormGrad::kDX});
  if (norm.addend) {
    rule.shape(RmsNormGrad::kAddend, x.shape);
    rule.mixed_types({RmsNormGrad::kX, RmsNormGrad::kAddend});
  }
  if (norm.weight_gradient) {
    rule.shape(RmsNormGrad::kDW, Shape{x.shape[1]});
    rule.mixed_types({RmsNormGrad::kX, RmsNormGrad::kDW});
  }
  return rule.error();
}

// Operations per element: square, sum, scale, weight (4).
Cost cost(const RmsNorm&, const OperationView& view, const Extent&) {
  return streaming_cost(view, view[RmsNorm::kX].shape.elements(), 4);
}

// Operations per element: the sum of squares again (2), dy * w and its product with x (3), dx (4),
// the addend, and dy * normalised x, summed for the weight (3).
Cost cost(const RmsNormGrad& norm, const OperationView& view, const Extent&) {
  const double flops = 9.0 + (norm.addend ? 1.0 : 0.0) + (norm.weight_gradient ? 3.0 : 0.0);
  return streaming_cost(view, view[RmsNormGrad::kX].shape.elements(), flops);
}

void differentiate(const RmsNorm& norm, const Operation& operation, Tape& tape) {
  const TensorId dy = tape.gradient(id_of(operation, RmsNorm::kY));
  const TensorId x = id_of(operation, RmsNorm::kX);
  const TensorId w = id_of(operation, RmsNorm::kW);
  const bool wants_w = tape.wants(w);
  if (dy == kNone || (!tape.wants(x) && !wants_w)) return;
  // Copied, since the program's table grows below.
  const Tensor input = tape.program().tensor(x);
  const TensorId dx =
      tape.wants(x) ? tape.contribute(x) : tape.temporary("dx", input.shape, input.dtype);
  std::vector<TensorId> writes{dx};
  if (wants_w) writes.push_back(tape.contribute(w));
  RmsNormGrad grad;
  grad.epsilon = norm.epsilon;
  grad.offset = norm.offset;
  grad.weight_gradient = wants_w;
  tape.emit(grad, {dy, x, w}, std::move(writes));
}

}  // namespace

SNUG_DEFINE_KIND(RmsNorm, .differentiate = differentiate);
SNUG_DEFINE_KIND(RmsNormGrad);

}  // namespace snug::program
