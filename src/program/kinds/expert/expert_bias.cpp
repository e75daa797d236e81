#include "program/kinds/expert/expert_bias.h"

#include "program/ir/tape.h"
#include "program/kinds/functions.h"
#include "program/kinds/shape_rule.h"
#include "program/kinds/traffic.h"

namespace snug::program {
namespace {

// Checks that each expert has a bias as wide as the rows, and that there are bounds for all
// experts.
template <typename Struct>
void require_biases(const Operand<Struct>& rows, const Operand<Struct>& bias,
                    const OperationView& view, ShapeRule& rule) {
  const Shape& shape = view[bias].shape;
  rule.rank(rows, 2);
  rule.rank(bias, 2);
  rule.shape(bias, Shape{shape.rows(), view[rows].shape.columns()});
  rule.require(shape.rows() > 0, "has no experts");
  rule.index(Struct::kBounds, Shape{shape.rows(), 2});
  rule.mixed_types({rows, bias});
}

// Checks that each row has a place and a weight.
template <typename Struct>
void require_weights(const Operand<Struct>& rows, const Operand<Struct>& weights,
                     const OperationView& view, ShapeRule& rule) {
  const Shape& places = view[Struct::kPlaces].shape;
  rule.rank(Struct::kPlaces, 2);
  rule.index(Struct::kPlaces, places);
  rule.require(places.elements() == view[rows].shape.rows(), "has places for other rows");
  rule.measure(weights, places);
  rule.mixed_types({rows, weights});
}

std::string shape_error(const AddExpertBias& add, const OperationView& view) {
  ShapeRule rule(view);
  require_biases(AddExpertBias::kX, AddExpertBias::kBias, view, rule);
  if (add.weighted) require_weights(AddExpertBias::kX, AddExpertBias::kWeights, view, rule);
  rule.shape(AddExpertBias::kY, view[AddExpertBias::kX].shape);
  rule.mixed_types({AddExpertBias::kX, AddExpertBias::kY});
  return rule.error();
}

std::string shape_error(const ExpertBiasGrad& grad, const OperationView& view) {
  ShapeRule rule(view);
  require_biases(ExpertBiasGrad::kDY, ExpertBiasGrad::kDBias, view, rule);
  if (grad.weighted) require_weights(ExpertBiasGrad::kDY, ExpertBiasGrad::kWeights, view, rule);
  return rule.error();
}

std::string shape_error(const ExpertBiasWeightsGrad&, const OperationView& view) {
  using Grad = ExpertBiasWeightsGrad;
  ShapeRule rule(view);
  require_biases(Grad::kDY, Grad::kBias, view, rule);
  require_weights(Grad::kDY, Grad::kDWeights, view, rule);
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

}  // namespace

SNUG_DEFINE_KIND(AddExpertBias, .differentiate = differentiate);
SNUG_DEFINE_KIND(ExpertBiasGrad);
SNUG_DEFINE_KIND(ExpertBiasWeightsGrad);

}  // namespace snug::program
