#include "program/kinds/elementwise/noise.h"

#include <cmath>

#include "program/ir/tape.h"
#include "program/kinds/functions.h"
#include "program/kinds/shape_rule.h"
#include "program/kinds/traffic.h"

namespace snug::program {
namespace {

std::string shape_error(const AddNoise& noise, const OperationView& view) {
  ShapeRule rule(view);
  rule.require(std::isfinite(noise.alpha) && noise.alpha >= 0.0F,
               "has an alpha that is negative or not finite");
  rule.require(noise.row_length > 0, "has a row_length that is not positive");
  const Tensor& x = view[AddNoise::kX];
  rule.rank(AddNoise::kX, 2);
  rule.rank(AddNoise::kBounds, 2);
  rule.index(AddNoise::kBounds, Shape{view[AddNoise::kBounds].shape[0], 2});
  rule.index(AddNoise::kRandom, Shape{2});
  rule.shape(AddNoise::kY, x.shape);
  rule.same_type({AddNoise::kX, AddNoise::kY});
  return rule.error();
}

// Operations per element: a number between -1 and 1 (2), its scale, the sum. Generating random
// words is part of the kind's measured rate.
Cost cost(const AddNoise&, const OperationView& view, const Extent&) {
  return streaming_cost(view, view[AddNoise::kY].shape.elements(), 4);
}

// The noise does not depend on x.
void differentiate(const AddNoise&, const Operation& operation, Tape& tape) {
  const TensorId dy = tape.gradient(id_of(operation, AddNoise::kY));
  const TensorId x = id_of(operation, AddNoise::kX);
  if (dy != kNone && tape.wants(x)) tape.pass_through(x, dy);
}

}  // namespace

SNUG_DEFINE_KIND(AddNoise, .differentiate = differentiate);

}  // namespace snug::program
