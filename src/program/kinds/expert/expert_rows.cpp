#include "program/kinds/expert/expert_rows.h"

#include "program/ir/tape.h"
#include "program/kinds/functions.h"
#include "program/kinds/shape_rule.h"
#include "program/kinds/traffic.h"

namespace snug::program {
namespace {

// Checks that one operand has a row for each token, and the other a row for each place.
template <typename Struct>
void require_places(const Operand<Struct>& tokens, const Operand<Struct>& rows,
                    const OperationView& view, ShapeRule& rule) {
  const Shape& places = view[Struct::kPlaces].shape;
  rule.rank(Struct::kPlaces, 2);
  rule.index(Struct::kPlaces, places);
  rule.rank(tokens, 2);
  rule.rank(rows, 2);
  const int64_t columns = view[tokens].shape.columns();
  rule.shape(tokens, Shape{places.rows(), columns});
  rule.shape(rows, Shape{places.elements(), columns});
  rule.mixed_types({tokens, rows});
}

std::string shape_error(const Permute&, const OperationView& view) {
  ShapeRule rule(view);
  require_places(Permute::kX, Permute::kY, view, rule);
  return rule.error();
}

std::string shape_error(const Combine&, const OperationView& view) {
  ShapeRule rule(view);
  require_places(Combine::kY, Combine::kX, view, rule);
  return rule.error();
}

// Checks the rows of x, and the weight and the place of each row.
template <typename Struct>
void require_weighted(const Operand<Struct>& weights, const OperationView& view, ShapeRule& rule) {
  const Shape& places = view[Struct::kPlaces].shape;
  rule.rank(Struct::kPlaces, 2);
  rule.index(Struct::kPlaces, places);
  rule.measure(weights, places);
  rule.rank(Struct::kX, 2);
  rule.shape(Struct::kX, Shape{places.elements(), view[Struct::kX].shape.columns()});
  rule.mixed_types({Struct::kX, weights});
}

std::string shape_error(const ScaleRows&, const OperationView& view) {
  ShapeRule rule(view);
  const Tensor& x = view[ScaleRows::kX];
  require_weighted(ScaleRows::kWeights, view, rule);
  rule.shape(ScaleRows::kY, x.shape);
  rule.mixed_types({ScaleRows::kX, ScaleRows::kY});
  return rule.error();
}

std::string shape_error(const ScaleRowsGrad&, const OperationView& view) {
  ShapeRule rule(view);
  const Tensor& x = view[ScaleRowsGrad::kX];
  require_weighted(ScaleRowsGrad::kWeights, view, rule);
  require_weighted(ScaleRowsGrad::kDWeights, view, rule);
  rule.shape(ScaleRowsGrad::kDY, x.shape);
  rule.shape(ScaleRowsGrad::kDX, x.shape);
  rule.mixed_types({ScaleRowsGrad::kX, ScaleRowsGrad::kDY, ScaleRowsGrad::kDX});
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

// If the weights need no gradient, dx is computed by the forward operation itself.
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
  // Copied, since the program's table grows below.
  const Shape shape = tape.program().tensor(x).shape;
  const DType type = tape.program().tensor(x).dtype;
  const TensorId dx = tape.wants(x) ? tape.contribute(x) : tape.temporary("rows", shape, type);
  tape.emit(ScaleRowsGrad{}, {dy, x, weights, places}, {dx, tape.contribute(weights)});
}

}  // namespace

SNUG_DEFINE_KIND(Permute, .differentiate = differentiate);
SNUG_DEFINE_KIND(Combine, .differentiate = differentiate);
SNUG_DEFINE_KIND(ScaleRows, .differentiate = differentiate);
SNUG_DEFINE_KIND(ScaleRowsGrad);

}  // namespace snug::program
