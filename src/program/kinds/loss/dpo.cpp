#include "program/kinds/loss/dpo.h"

#include <cmath>

#include "program/ir/tape.h"
#include "program/kinds/functions.h"
#include "program/kinds/shape_rule.h"
#include "program/kinds/traffic.h"

namespace snug::program {
namespace {

// Operations per pair: margin, softplus, sigmoid and the measures.
constexpr double kPairFlops = 24;

// Checks the operands that both kinds share; returns the shape of the policy's log-probabilities.
template <typename Struct>
Shape require_pairs(const Struct& dpo, const OperationView& view, ShapeRule& rule) {
  const Tensor& policy = view[Struct::kPolicy];
  rule.rank(Struct::kPolicy, 1);
  rule.measure(Struct::kPolicy, policy.shape);
  rule.require(policy.shape.elements() % 2 == 0, "has an odd number of segments");
  if (dpo.reference) rule.measure(Struct::kReference, policy.shape);
  rule.index(Struct::kBounds, Shape{policy.shape.elements(), 2});
  rule.measure(Struct::kInversePairs, Shape{1});
  rule.require(std::isfinite(dpo.beta) && dpo.beta >= 0.0F,
               "has a beta that is negative or not finite");
  rule.require(dpo.label_smoothing >= 0.0F && dpo.label_smoothing < 0.5F,
               "has a label_smoothing that is not in [0, 0.5)");
  rule.require(std::isfinite(dpo.target_margin), "has a target_margin that is not finite");
  if (dpo.means) rule.index(Struct::kAnswers, Shape{policy.shape.elements(), 2});
  return policy.shape;
}

std::string shape_error(const Dpo& dpo, const OperationView& view) {
  ShapeRule rule(view);
  require_pairs(dpo, view, rule);
  rule.measure(Dpo::kMeasures, Shape{kPreferenceMeasureCount});
  rule.measure(Dpo::kLoss, Shape{1});
  return rule.error();
}

std::string shape_error(const DpoGrad& grad, const OperationView& view) {
  ShapeRule rule(view);
  const Shape segments = require_pairs(grad, view, rule);
  rule.measure(DpoGrad::kDPolicy, segments);
  return rule.error();
}

Cost cost(const Dpo&, const OperationView& view, const Extent&) {
  return streaming_cost(view, view[Dpo::kPolicy].shape.elements() / 2, kPairFlops);
}

Cost cost(const DpoGrad&, const OperationView& view, const Extent&) {
  return streaming_cost(view, view[DpoGrad::kPolicy].shape.elements() / 2, kPairFlops);
}

// `loss` is the root of the backward pass: its gradient is 1. The reference is a constant.
void differentiate(const Dpo& dpo, const Operation& operation, Tape& tape) {
  const TensorId policy = id_of(operation, Dpo::kPolicy);
  if (!tape.wants(policy)) return;
  tape.emit(
      DpoGrad{dpo.beta, dpo.form, dpo.label_smoothing, dpo.means, dpo.reference, dpo.target_margin},
      operation.reads, {tape.contribute(policy)});
}

}  // namespace

SNUG_DEFINE_KIND(Dpo, .differentiate = differentiate);
SNUG_DEFINE_KIND(DpoGrad);

}  // namespace snug::program
