#include "program/kinds/expert_rows.h"

#include "program/kinds/functions.h"
#include "program/kinds/shape_rule.h"
#include "program/kinds/traffic.h"
#include "program/tape.h"

namespace snug::program {
namespace {

// Of one operand with a row for each token, and one with a row for each place.
void require_places(const Tensor& tokens, const Tensor& rows, const Tensor& places,
                    ShapeRule& rule) {
  rule.rank({"places", places}, 2);
  rule.index({"places", places}, places.shape);
  rule.rank({"the side of tokens", tokens}, 2);
  rule.rank({"the side of experts", rows}, 2);
  const int64_t columns = tokens.shape.columns();
  rule.shape({"the side of tokens", tokens}, Shape{places.shape.rows(), columns});
  rule.shape({"the side of experts", rows}, Shape{places.shape.elements(), columns});
  rule.mixed_types({{"the side of tokens", tokens}, {"the side of experts", rows}});
}

std::string shape_error(const Permute&, const OperationView& view) {
  ShapeRule rule;
  require_places(view[Permute::kX], view[Permute::kY], view[Permute::kPlaces], rule);
  return rule.error();
}

std::string shape_error(const Combine&, const OperationView& view) {
  ShapeRule rule;
  require_places(view[Combine::kY], view[Combine::kX], view[Combine::kPlaces], rule);
  return rule.error();
}

// Rows of x, and the measure and the place that each has.
void require_weighted(const Tensor& x, const ShapeRule::NamedTensor& weights, const Tensor& places,
                      ShapeRule& rule) {
  rule.rank({"places", places}, 2);
  rule.index({"places", places}, places.shape);
  rule.measure(weights, places.shape);
  rule.rank({"x", x}, 2);
  rule.shape({"x", x}, Shape{places.shape.elements(), x.shape.columns()});
  rule.mixed_types({{"x", x}, weights});
}

std::string shape_error(const ScaleRows&, const OperationView& view) {
  ShapeRule rule;
  const Tensor& x = view[ScaleRows::kX];
  require_weighted(x, {"weights", view[ScaleRows::kWeights]}, view[ScaleRows::kPlaces], rule);
  rule.shape({"y", view[ScaleRows::kY]}, x.shape);
  rule.mixed_types({{"x", x}, {"y", view[ScaleRows::kY]}});
  return rule.error();
}

std::string shape_error(const ScaleRowsGrad&, const OperationView& view) {
  ShapeRule rule;
  const Tensor& x = view[ScaleRowsGrad::kX];
  const Tensor& places = view[ScaleRowsGrad::kPlaces];
  require_weighted(x, {"weights", view[ScaleRowsGrad::kWeights]}, places, rule);
  require_weighted(x, {"dweights", view[ScaleRowsGrad::kDWeights]}, places, rule);
  rule.shape({"dy", view[ScaleRowsGrad::kDY]}, x.shape);
  rule.shape({"dx", view[ScaleRowsGrad::kDX]}, x.shape);
  rule.mixed_types({{"x", x}, {"dy", view[ScaleRowsGrad::kDY]}, {"dx", view[ScaleRowsGrad::kDX]}});
  return rule.error();
}

Cost cost(const Permute&, const OperationView& view, const Extent&) {
  return streaming_cost(view, 0, 0);
}

Cost cost(const Combine&, const OperationView& view, const Extent&) {
  return streaming_cost(view, view[Combine::kX].shape.elements(), 1);
}

Cost cost(const ScaleRows&, const OperationView& view, const Extent&) {
  return streaming_cost(view, view[ScaleRows::kX].shape.elements(), 1);
}

Cost cost(const ScaleRowsGrad&, const OperationView& view, const Extent&) {
  return streaming_cost(view, view[ScaleRowsGrad::kX].shape.elements(), 3);
}

void differentiate(const Permute&, const Operation& operation, Tape& tape) {
  const TensorId dy = tape.gradient(id_of(operation, Permute::kY));
  const TensorId x = id_of(operation, Permute::kX);
  const TensorId places = id_of(operation, Permute::kPlaces);
  if (dy == kNone || !tape.wants(x)) return;
  tape.emit(Combine{}, {dy, places}, {tape.contribute(x)});
}

void differentiate(const Combine&, const Operation& operation, Tape& tape) {
  const TensorId dy = tape.gradient(id_of(operation, Combine::kY));
  const TensorId x = id_of(operation, Combine::kX);
  const TensorId places = id_of(operation, Combine::kPlaces);
  if (dy == kNone || !tape.wants(x)) return;
  tape.emit(Permute{}, {dy, places}, {tape.contribute(x)});
}

// Where weights want no gradient, dx is what the forward pass does.
void differentiate(const ScaleRows&, const Operation& operation, Tape& tape) {
  const TensorId dy = tape.gradient(id_of(operation, ScaleRows::kY));
  const TensorId x = id_of(operation, ScaleRows::kX);
  const TensorId weights = id_of(operation, ScaleRows::kWeights);
  const TensorId places = id_of(operation, ScaleRows::kPlaces);
  if (dy == kNone) return;
  if (!tape.wants(weights)) {
    if (tape.wants(x)) tape.emit(ScaleRows{}, {dy, weights, places}, {tape.contribute(x)});
    return;
  }
  // Copies: the table grows below.
  const Shape shape = tape.program().tensor(x).shape;
  const DType type = tape.program().tensor(x).dtype;
  const TensorId dx = tape.wants(x) ? tape.contribute(x) : tape.temporary("rows", shape, type);
  tape.emit(ScaleRowsGrad{}, {dy, x, weights, places}, {dx, tape.contribute(weights)});
}

InPlacePairs in_place_pairs(const ScaleRows& scale) {
  return in_place(scale, {{ScaleRows::kY, ScaleRows::kX}});
}

InPlacePairs in_place_pairs(const ScaleRowsGrad& grad) {
  return in_place(grad, {{ScaleRowsGrad::kDX, ScaleRowsGrad::kDY}});
}

}  // namespace

SNUG_DEFINE_KIND(Permute, .differentiate = differentiate);
SNUG_DEFINE_KIND(Combine, .differentiate = differentiate);
SNUG_DEFINE_KIND(ScaleRows, .differentiate = differentiate, .in_place_pairs = in_place_pairs);
SNUG_DEFINE_KIND(ScaleRowsGrad, .in_place_pairs = in_place_pairs);

}  // namespace snug::program
