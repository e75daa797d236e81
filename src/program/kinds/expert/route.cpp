#include "program/kinds/expert/route.h"

#include <utility>

#include "base/error.h"
#include "program/ir/tape.h"
#include "program/kinds/functions.h"
#include "program/kinds/shape_rule.h"
#include "program/kinds/traffic.h"

namespace snug::program {
namespace {

// A device notes in 64 bits which groups are chosen.
constexpr int64_t kMaxRouteGroups = 64;

template <typename Struct>
void check_segments(const Struct&, const OperationView& view, ShapeRule& rule) {
  rule.rank(Struct::kSegments, 2);
  rule.index(Struct::kSegments, Shape{view[Struct::kSegments].shape.rows(), 2});
}

std::string shape_error(const Route& route, const OperationView& view) {
  ShapeRule rule(view);
  const Tensor& logits = view[Route::kLogits];
  rule.rank(Route::kLogits, 2);
  const Shape& shape = logits.shape;
  rule.require(route.k >= 1, "has a k below 1");
  rule.require(route.k <= shape.columns(), "has a k above the number of experts");
  rule.require(route.groups >= 1 && route.chosen_groups >= 1 &&
                   route.chosen_groups <= route.groups && route.groups <= kMaxRouteGroups,
               "has a number of groups that is not 1 to 64, or chooses more than there are");
  rule.require(route.groups == 1 ||
                   (shape.columns() % route.groups == 0 && shape.columns() / route.groups >= 2 &&
                    shape.columns() / route.groups * route.chosen_groups >= route.k),
               "has groups that are not equal, or of fewer than two experts, or too few for k");
  rule.require(!route.sigmoid || !route.balance, "balances scores that are no softmax");
  const Shape chosen{shape.rank() > 0 ? shape[0] : 0, route.k};
  rule.measure(Route::kWeights, chosen);
  rule.index(Route::kIds, chosen);
  rule.index(Route::kPlaces, chosen);
  rule.index(Route::kBounds, Shape{shape.columns(), 2});
  rule.mixed_types({Route::kLogits, Route::kWeights});
  if (route.corrected) {
    rule.measure(Route::kCorrection, Shape{shape.columns()});
    rule.mixed_types({Route::kLogits, Route::kCorrection});
  }
  if (!route.balance) return rule.error();
  check_segments(route, view, rule);
  rule.index(Route::kCounts, Shape{shape.columns()});
  rule.measure(Route::kSums, Shape{shape.columns()});
  rule.mixed_types({Route::kLogits, Route::kSums});
  return rule.error();
}

std::string shape_error(const RouteGrad& grad, const OperationView& view) {
  ShapeRule rule(view);
  const Tensor& logits = view[RouteGrad::kLogits];
  const Tensor& dweights = view[RouteGrad::kDWeights];
  rule.rank(RouteGrad::kLogits, 2);
  rule.rank(RouteGrad::kDWeights, 2);
  rule.require(!grad.sigmoid || !grad.balance, "balances scores that are no softmax");
  const Shape chosen{logits.shape.rank() > 0 ? logits.shape[0] : 0, dweights.shape.columns()};
  rule.measure(RouteGrad::kDWeights, chosen);
  rule.index(RouteGrad::kIds, chosen);
  rule.shape(RouteGrad::kDLogits, logits.shape);
  rule.mixed_types({RouteGrad::kLogits, RouteGrad::kDWeights, RouteGrad::kDLogits});
  if (!grad.balance) return rule.error();
  check_segments(grad, view, rule);
  rule.measure(RouteGrad::kDSums, Shape{logits.shape.columns()});
  rule.mixed_types({RouteGrad::kLogits, RouteGrad::kDSums});
  return rule.error();
}

// Each logit is compared once for each chosen expert. Its exponential (3) is computed a second time
// where its share of the sum is added up. On a device, one launch chooses experts and another one
// sorts rows.
Cost cost(const Route& route, const OperationView& view, const Extent&) {
  const int64_t logits = view[Route::kLogits].shape.elements();
  const double of_balance = route.balance ? 5 : 0;
  Cost cost = streaming_cost(view, logits, 4 + static_cast<double>(route.k) + of_balance);
  cost.launches = 2;
  return cost;
}

// Operations per logit: the exponential (3), its share of the sum, and two products. With `balance`
// the same again, where one product is added to a sum.
Cost cost(const RouteGrad& grad, const OperationView& view, const Extent&) {
  return streaming_cost(view, view[RouteGrad::kLogits].shape.elements(), grad.balance ? 15 : 7);
}

void differentiate(const Route& route, const Operation& operation, Tape& tape) {
  const TensorId dweights = tape.gradient(id_of(operation, Route::kWeights));
  const TensorId dsums = route.balance ? tape.gradient(id_of(operation, Route::kSums)) : kNone;
  const TensorId logits = id_of(operation, Route::kLogits);
  const TensorId ids = id_of(operation, Route::kIds);
  // A gradient through the sums over all tokens always comes with one through the experts' weights.
  SNUG_CHECK(dweights != kNone || dsums == kNone, "a route whose weights nothing reads");
  if (dweights == kNone || !tape.wants(logits)) return;
  std::vector<TensorId> reads{dweights, logits, ids};
  if (dsums != kNone) reads.insert(reads.end(), {dsums, id_of(operation, Route::kSegments)});
  tape.emit(RouteGrad{.normalize = route.normalize,
                      .balance = dsums != kNone,
                      .sigmoid = route.sigmoid,
                      .scale = route.scale},
            std::move(reads), {tape.contribute(logits)});
}

}  // namespace

SNUG_DEFINE_KIND(Route, .differentiate = differentiate);
SNUG_DEFINE_KIND(RouteGrad);

}  // namespace snug::program
