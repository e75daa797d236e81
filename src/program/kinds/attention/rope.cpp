#include "program/kinds/attention/rope.h"

#include <cmath>

#include "program/ir/tape.h"
#include "program/kinds/functions.h"
#include "program/kinds/shape_rule.h"
#include "program/kinds/traffic.h"

namespace snug::program {
namespace {

std::string shape_error(const RotaryTable& rotary, const OperationView& view) {
  ShapeRule rule(view);
  rule.require(std::isfinite(rotary.factor), "has a factor that is not finite");
  rule.require(std::isfinite(rotary.growth), "has a growth that is not finite");
  rule.require(rotary.period > 0, "has a period that is not positive");
  const Tensor& positions = view[RotaryTable::kPositions];
  const Tensor& frequency = view[RotaryTable::kInverseFrequency];
  rule.rank(RotaryTable::kPositions, 1);
  rule.index(RotaryTable::kPositions, Shape{positions.shape[0]});
  rule.rank(RotaryTable::kInverseFrequency, 1);
  rule.measure(RotaryTable::kInverseFrequency, frequency.shape);
  rule.measure(RotaryTable::kTable, Shape{positions.shape[0], 2 * frequency.shape[0]});
  return rule.error();
}

std::string shape_error(const Rope& rope, const OperationView& view) {
  ShapeRule rule(view);
  rule.require(rope.head_dim > 0 && rope.head_dim % 2 == 0,
               "has a head_dim that is not positive and even");
  rule.require(rope.rotary_dim >= 0 && rope.rotary_dim % 2 == 0 && rope.rotary_dim <= rope.head_dim,
               "has a rotary_dim that is odd or not within a head");
  const Tensor& x = view[Rope::kX];
  rule.rank(Rope::kX, 2);
  rule.require(rope.head_dim > 0 && x.shape[1] % rope.head_dim == 0,
               "has an x whose width is no multiple of head_dim");
  rule.require(rope.rotated_heads >= 0 && rope.rotated_heads * rope.head_dim <= x.shape[1],
               "rotates more heads than x has");
  rule.measure(Rope::kTable, Shape{x.shape[0], rotated_width(rope)});
  rule.shape(Rope::kY, x.shape);
  rule.mixed_types({Rope::kX, Rope::kY});
  return rule.error();
}

// Operations per element: an angle, a sine or cosine, and a factor (3).
Cost cost(const RotaryTable&, const OperationView& view, const Extent&) {
  return streaming_cost(view, view[RotaryTable::kTable].shape.elements(), 3);
}

// Operations per element: two products and a sum (3).
Cost cost(const Rope&, const OperationView& view, const Extent&) {
  return streaming_cost(view, view[Rope::kY].shape.elements(), 3);
}

// The derivative of a rotation is its transpose: the inverse rotation, with the same factor of the
// table.
void differentiate(const Rope& rope, const Operation& operation, Tape& tape) {
  const TensorId dy = tape.gradient(id_of(operation, Rope::kY));
  const TensorId x = id_of(operation, Rope::kX);
  if (dy == kNone || !tape.wants(x)) return;
  Rope back = rope;
  back.inverse = !rope.inverse;
  tape.emit(back, {dy, id_of(operation, Rope::kTable)}, {tape.contribute(x)});
}

}  // namespace

SNUG_DEFINE_KIND(RotaryTable);
SNUG_DEFINE_KIND(Rope, .differentiate = differentiate);

}  // namespace snug::program
