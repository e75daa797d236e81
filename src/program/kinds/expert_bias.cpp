#include "program/kinds/expert_bias.h"

#include "program/kinds/functions.h"
#include "program/kinds/shape_rule.h"
#include "program/kinds/traffic.h"
#include "program/tape.h"

namespace snug::program {
namespace {

// Of rows of experts, a bias for each and the bounds of all.
void require_biases(const Tensor& rows, const Tensor& bias, const Tensor& bounds, ShapeRule& rule) {
  rule.rank({"rows", rows}, 2);
  rule.rank({"bias", bias}, 2);
  rule.shape({"bias", bias}, Shape{bias.shape.rows(), rows.shape.columns()});
  rule.require(bias.shape.rows() > 0, "has no experts");
  rule.index({"bounds", bounds}, Shape{bias.shape.rows(), 2});
  rule.mixed_types({{"rows", rows}, {"bias", bias}});
}

// Of the weights of so many rows.
void require_weights(const Tensor& rows, const Tensor& weights, const Tensor& places,
                     ShapeRule& rule) {
  rule.rank({"places", places}, 2);
  rule.index({"places", places}, places.shape);
  rule.require(places.shape.elements() == rows.shape.rows(), "has places for other rows");
  rule.measure({"weights", weights}, places.shape);
  rule.mixed_types({{"rows", rows}, {"weights", weights}});
}

std::string shape_error(const AddExpertBias& add, const OperationView& view) {
  ShapeRule rule;
  const Tensor& x = view[AddExpertBias::kX];
  require_biases(x, view[AddExpertBias::kBias], view[AddExpertBias::kBounds], rule);
  if (add.weighted)
    require_weights(x, view[AddExpertBias::kWeights], view[AddExpertBias::kPlaces], rule);
  rule.shape({"y", view[AddExpertBias::kY]}, x.shape);
  rule.mixed_types({{"x", x}, {"y", view[AddExpertBias::kY]}});
  return rule.error();
}

std::string shape_error(const ExpertBiasGrad& grad, const OperationView& view) {
  ShapeRule rule;
  const Tensor& dy = view[ExpertBiasGrad::kDY];
  require_biases(dy, view[ExpertBiasGrad::kDBias], view[ExpertBiasGrad::kBounds], rule);
  if (grad.weighted)
    require_weights(dy, view[ExpertBiasGrad::kWeights], view[ExpertBiasGrad::kPlaces], rule);
  return rule.error();
}

std::string shape_error(const ExpertBiasWeightsGrad&, const OperationView& view) {
  using Grad = ExpertBiasWeightsGrad;
  ShapeRule rule;
  const Tensor& dy = view[Grad::kDY];
  require_biases(dy, view[Grad::kBias], view[Grad::kBounds], rule);
  require_weights(dy, view[Grad::kDWeights], view[Grad::kPlaces], rule);
  return rule.error();
}

Cost cost(const AddExpertBias& add, const OperationView& view, const Extent&) {
  return streaming_cost(view, view[AddExpertBias::kY].shape.elements(), add.weighted ? 2 : 1);
}

Cost cost(const ExpertBiasGrad& grad, const OperationView& view, const Extent&) {
  return streaming_cost(view, view[ExpertBiasGrad::kDY].shape.elements(), grad.weighted ? 2 : 1);
}

Cost cost(const ExpertBiasWeightsGrad&, const OperationView& view, const Extent&) {
  return streaming_cost(view, view[ExpertBiasWeightsGrad::kDY].shape.elements(), 2);
}

void differentiate(const AddExpertBias& add, const Operation& operation, Tape& tape) {
  const auto id = [&](const Operand<AddExpertBias>& operand) { return id_of(operation, operand); };
  const TensorId dy = tape.gradient(id(AddExpertBias::kY));
  if (dy == kNone) return;
  const TensorId bias = id(AddExpertBias::kBias);
  const TensorId bounds = id(AddExpertBias::kBounds);
  if (tape.wants(bias)) {
    std::vector<TensorId> reads{dy, bounds};
    if (add.weighted) {
      reads.push_back(id(AddExpertBias::kWeights));
      reads.push_back(id(AddExpertBias::kPlaces));
    }
    tape.emit(ExpertBiasGrad{add.weighted}, std::move(reads), {tape.contribute(bias)});
  }
  if (add.weighted && tape.wants(id(AddExpertBias::kWeights)))
    tape.emit(ExpertBiasWeightsGrad{}, {dy, bias, bounds, id(AddExpertBias::kPlaces)},
              {tape.contribute(id(AddExpertBias::kWeights))});
  if (tape.wants(id(AddExpertBias::kX))) tape.pass_through(id(AddExpertBias::kX), dy);
}

InPlacePairs in_place_pairs(const AddExpertBias& add) {
  return in_place(add, {{AddExpertBias::kY, AddExpertBias::kX}});
}

}  // namespace

SNUG_DEFINE_KIND(AddExpertBias, .differentiate = differentiate, .in_place_pairs = in_place_pairs);
SNUG_DEFINE_KIND(ExpertBiasGrad);
SNUG_DEFINE_KIND(ExpertBiasWeightsGrad);

}  // namespace snug::program
