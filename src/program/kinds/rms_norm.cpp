#include "program/kinds/rms_norm.h"

#include "program/kinds/overloads.h"
#include "program/kinds/shape_rule.h"
#include "program/kinds/traffic.h"
#include "program/tape.h"

namespace snug::program {

std::string shape_error(const RmsNorm& norm, const OperationView& view) {
  ShapeRule rule(view);
  rule.require(norm.epsilon >= 0.0F, "has a negative epsilon");
  if (!rule.counts(2, 1)) return rule.error();
  const Tensor& x = view.read(0);
  rule.rank({"x", x}, 2);
  rule.shape({"w", view.read(1)}, Shape{x.shape[1]});
  rule.shape({"y", view.write(0)}, x.shape);
  rule.mixed_types({{"x", x}, {"w", view.read(1)}, {"y", view.write(0)}});
  return rule.error();
}

std::string shape_error(const RmsNormGrad& norm, const OperationView& view) {
  ShapeRule rule(view);
  rule.require(norm.epsilon >= 0.0F, "has a negative epsilon");
  rule.require(!norm.accumulate || norm.weight_gradient,
               "accumulates a weight gradient that it does not make");
  const bool writes_dw = norm.weight_gradient && !norm.accumulate;
  if (!rule.counts(norm.addend ? 4 : 3, writes_dw ? 2 : 1, norm.accumulate ? 1 : 0))
    return rule.error();
  const Tensor& dy = view.read(0);
  const Tensor& x = view.read(1);
  rule.rank({"x", x}, 2);
  rule.shape({"dy", dy}, x.shape);
  rule.shape({"w", view.read(2)}, Shape{x.shape[1]});
  rule.shape({"dx", view.write(0)}, x.shape);
  rule.mixed_types({{"x", x}, {"dy", dy}, {"w", view.read(2)}, {"dx", view.write(0)}});
  if (norm.addend) {
    rule.shape({"addend", view.read(3)}, x.shape);
    rule.mixed_types({{"x", x}, {"addend", view.read(3)}});
  }
  if (norm.weight_gradient) {
    const Tensor& dw = norm.accumulate ? view.update(0) : view.write(1);
    rule.shape({"dw", dw}, Shape{x.shape[1]});
    rule.mixed_types({{"x", x}, {"dw", dw}});
  }
  return rule.error();
}

// Square, sum, scale, weight.
Cost cost(const RmsNorm&, const OperationView& view, const Load&) {
  return streaming_cost(view, view.read(0).shape.elements(), 4);
}

// The square sum again (2), dy * w and its product with x (3), dx (4), the addend, and dy * x
// normalised and summed for the weight (3).
Cost cost(const RmsNormGrad& norm, const OperationView& view, const Load&) {
  const double flops = 9.0 + (norm.addend ? 1.0 : 0.0) + (norm.weight_gradient ? 3.0 : 0.0);
  return streaming_cost(view, view.read(1).shape.elements(), flops);
}

void differentiate(const RmsNorm& norm, const Operation& operation, Tape& tape) {
  const TensorId dy = tape.gradient(operation.writes[0]);
  const TensorId x = operation.reads[0];
  const TensorId w = operation.reads[1];
  const bool wants_w = tape.wants(w);
  if (dy == kNone || (!tape.wants(x) && !wants_w)) return;
  // A copy: the table grows below.
  const Tensor input = tape.program().tensor(x);
  const TensorId dx =
      tape.wants(x) ? tape.contribute(x) : tape.temporary("dx", input.shape, input.dtype);
  std::vector<TensorId> writes{dx};
  if (wants_w) writes.push_back(tape.contribute(w));
  RmsNormGrad grad;
  grad.epsilon = norm.epsilon;
  grad.weight_gradient = wants_w;
  tape.emit(grad, {dy, x, w}, std::move(writes));
}

InPlacePairs in_place_pairs(const RmsNorm&) { return {{0, 0}}; }

InPlacePairs in_place_pairs(const RmsNormGrad& norm) {
  if (norm.addend) return {{0, 3}};
  return {};
}

}  // namespace snug::program
