#include "program/kinds/rope.h"

#include <cmath>

#include "program/kinds/overloads.h"
#include "program/kinds/shape_rule.h"
#include "program/kinds/traffic.h"
#include "program/tape.h"

namespace snug::program {

std::string shape_error(const RotaryTable& rotary, const OperationView& view) {
  ShapeRule rule(view);
  rule.require(std::isfinite(rotary.factor), "has a factor that is not finite");
  if (!rule.counts(2, 1)) return rule.error();
  const Tensor& positions = view.read(0);
  const Tensor& frequency = view.read(1);
  rule.rank({"positions", positions}, 1);
  rule.index({"positions", positions}, Shape{positions.shape[0]});
  rule.rank({"inverse_frequency", frequency}, 1);
  rule.measure({"inverse_frequency", frequency}, frequency.shape);
  rule.measure({"table", view.write(0)}, Shape{positions.shape[0], 2 * frequency.shape[0]});
  return rule.error();
}

std::string shape_error(const Rope& rope, const OperationView& view) {
  ShapeRule rule(view);
  rule.require(rope.head_dim > 0 && rope.head_dim % 2 == 0,
               "has a head_dim that is not positive and even");
  if (!rule.counts(2, 1)) return rule.error();
  const Tensor& x = view.read(0);
  rule.rank({"x", x}, 2);
  rule.require(rope.head_dim > 0 && x.shape[1] % rope.head_dim == 0,
               "has an x whose width is no multiple of head_dim");
  rule.require(rope.turned_heads >= 0 && rope.turned_heads * rope.head_dim <= x.shape[1],
               "turns more heads than x has");
  rule.measure({"table", view.read(1)}, Shape{x.shape[0], rope.head_dim});
  rule.shape({"y", view.write(0)}, x.shape);
  rule.mixed_types({{"x", x}, {"y", view.write(0)}});
  return rule.error();
}

// An angle, a sine or cosine, a factor.
Cost cost(const RotaryTable&, const OperationView& view, const Load&) {
  return streaming_cost(view, view.write(0).shape.elements(), 3);
}

// Two products and a sum.
Cost cost(const Rope&, const OperationView& view, const Load&) {
  return streaming_cost(view, view.write(0).shape.elements(), 3);
}

// A rotation's derivative is its transpose: the rotation back, whatever factor scales the table.
void differentiate(const Rope& rope, const Operation& operation, Tape& tape) {
  const TensorId dy = tape.gradient(operation.writes[0]);
  const TensorId x = operation.reads[0];
  if (dy == kNone || !tape.wants(x)) return;
  Rope back = rope;
  back.inverse = !rope.inverse;
  tape.emit(back, {dy, operation.reads[1]}, {tape.contribute(x)});
}

InPlacePairs in_place_pairs(const Rope&) { return {{0, 0}}; }

}  // namespace snug::program
