#include "program/kinds/loss/orpo.h"

#include <cmath>

#include "program/ir/tape.h"
#include "program/kinds/functions.h"
#include "program/kinds/shape_rule.h"
#include "program/kinds/traffic.h"

namespace snug::program {
namespace {

// Operations per pair: two means with their odds, softplus, sigmoid and the measures.
constexpr double kOddsFlops = 48;

// Checks the operands that both kinds share; returns the shape of the log-probabilities.
template <typename Struct>
Shape require_odds(const Struct& orpo, const OperationView& view, ShapeRule& rule) {
  const Tensor& policy = view[Struct::kPolicy];
  rule.rank(Struct::kPolicy, 1);
  rule.measure(Struct::kPolicy, policy.shape);
  rule.require(policy.shape.elements() % 2 == 0, "has an odd number of segments");
  rule.index(Struct::kBounds, Shape{policy.shape.elements(), 2});
  rule.measure(Struct::kInversePairs, Shape{1});
  rule.measure(Struct::kInverseTokens, Shape{1});
  rule.require(std::isfinite(orpo.beta) && orpo.beta >= 0.0F,
               "has a beta that is negative or not finite");
  return policy.shape;
}

std::string shape_error(const Orpo& orpo, const OperationView& view) {
  ShapeRule rule(view);
  const Shape segments = require_odds(orpo, view, rule);
  rule.measure(Orpo::kNll, segments);
  rule.measure(Orpo::kMeasures, Shape{kOddsMeasureCount});
  rule.measure(Orpo::kLoss, Shape{1});
  return rule.error();
}

std::string shape_error(const OrpoGrad& grad, const OperationView& view) {
  ShapeRule rule(view);
  const Shape segments = require_odds(grad, view, rule);
  rule.measure(OrpoGrad::kDPolicy, segments);
  rule.measure(OrpoGrad::kDNll, segments);
  return rule.error();
}

Cost cost(const Orpo&, const OperationView& view, const Extent&) {
  return streaming_cost(view, view[Orpo::kPolicy].shape.elements() / 2, kOddsFlops);
}

Cost cost(const OrpoGrad&, const OperationView& view, const Extent&) {
  return streaming_cost(view, view[OrpoGrad::kPolicy].shape.elements() / 2, kOddsFlops);
}

// `loss` is the root of the backward pass: its gradient is 1.
void differentiate(const Orpo& orpo, const Operation& operation, Tape& tape) {
  const TensorId policy = id_of(operation, Orpo::kPolicy);
  const TensorId nll = id_of(operation, Orpo::kNll);
  if (!tape.wants(policy) && !tape.wants(nll)) return;
  const auto gradient = [&](TensorId input) {
    if (tape.wants(input)) return tape.contribute(input);
    const Tensor like = tape.program().tensor(input);  // copied, since the program's table grows
    return tape.temporary("unread", like.shape, like.dtype);
  };
  const TensorId dpolicy = gradient(policy);
  const TensorId dnll = gradient(nll);
  tape.emit(OrpoGrad{orpo.beta},
            {policy, id_of(operation, Orpo::kBounds), id_of(operation, Orpo::kInversePairs),
             id_of(operation, Orpo::kInverseTokens)},
            {dpolicy, dnll});
}

}  // namespace

SNUG_DEFINE_KIND(Orpo, .differentiate = differentiate);
SNUG_DEFINE_KIND(OrpoGrad);

}  // namespace snug::program
