#include "program/kinds/route.h"

#include "program/kinds/functions.h"
#include "program/kinds/shape_rule.h"
#include "program/kinds/traffic.h"
#include "program/tape.h"

namespace snug::program {
namespace {

std::string shape_error(const Route& route, const OperationView& view) {
  ShapeRule rule;
  const Tensor& logits = view[Route::kLogits];
  const Tensor& weights = view[Route::kWeights];
  rule.rank({"logits", logits}, 2);
  const Shape& shape = logits.shape;
  rule.require(route.k >= 1, "has a k below 1");
  rule.require(route.k <= shape.columns(), "has a k above the number of experts");
  const Shape chosen{shape.rank() > 0 ? shape[0] : 0, route.k};
  rule.measure({"weights", weights}, chosen);
  rule.index({"ids", view[Route::kIds]}, chosen);
  rule.index({"places", view[Route::kPlaces]}, chosen);
  rule.index({"bounds", view[Route::kBounds]}, Shape{shape.columns(), 2});
  rule.mixed_types({{"logits", logits}, {"weights", weights}});
  return rule.error();
}

std::string shape_error(const RouteGrad&, const OperationView& view) {
  ShapeRule rule;
  const Tensor& logits = view[RouteGrad::kLogits];
  const Tensor& dweights = view[RouteGrad::kDWeights];
  const Tensor& dlogits = view[RouteGrad::kDLogits];
  rule.rank({"logits", logits}, 2);
  rule.rank({"dweights", dweights}, 2);
  const Shape chosen{logits.shape.rank() > 0 ? logits.shape[0] : 0, dweights.shape.columns()};
  rule.measure({"dweights", dweights}, chosen);
  rule.index({"ids", view[RouteGrad::kIds]}, chosen);
  rule.shape({"dlogits", dlogits}, logits.shape);
  rule.mixed_types({{"logits", logits}, {"dweights", dweights}, {"dlogits", dlogits}});
  return rule.error();
}

// A logit is compared once for each expert that is chosen, and its exponential counts as 3. On a
// device one launch chooses and another one sorts.
Cost cost(const Route& route, const OperationView& view, const Extent&) {
  const int64_t logits = view[Route::kLogits].shape.elements();
  Cost cost = streaming_cost(view, logits, 4 + static_cast<double>(route.k));
  cost.launches = 2;
  return cost;
}

// The exponential (3), its share of the sum and two products.
Cost cost(const RouteGrad&, const OperationView& view, const Extent&) {
  return streaming_cost(view, view[RouteGrad::kLogits].shape.elements(), 7);
}

void differentiate(const Route& route, const Operation& operation, Tape& tape) {
  const TensorId dweights = tape.gradient(id_of(operation, Route::kWeights));
  const TensorId logits = id_of(operation, Route::kLogits);
  const TensorId ids = id_of(operation, Route::kIds);
  if (dweights == kNone || !tape.wants(logits)) return;
  tape.emit(RouteGrad{route.normalize}, {dweights, logits, ids}, {tape.contribute(logits)});
}

}  // namespace

SNUG_DEFINE_KIND(Route, .differentiate = differentiate);
SNUG_DEFINE_KIND(RouteGrad);

}  // namespace snug::program
