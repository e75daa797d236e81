#include "program/kinds/loss/kto.h"

#include <cmath>

#include "program/ir/tape.h"
#include "program/kinds/functions.h"
#include "program/kinds/shape_rule.h"
#include "program/kinds/traffic.h"

namespace snug::program {
namespace {

// Operations per example: ratio, sigmoid and measures; and for its mismatched answer.
constexpr double kExampleFlops = 24;
constexpr double kOtherFlops = 2;

// Checks the operands that all three kinds share; returns the shape of the policy's
// log-probabilities.
template <typename Struct>
Shape require_labels(const Struct&, const OperationView& view, ShapeRule& rule) {
  const Tensor& policy = view[Struct::kPolicy];
  rule.rank(Struct::kPolicy, 1);
  rule.measure(Struct::kPolicy, policy.shape);
  rule.require(policy.shape.elements() % 2 == 0, "has an odd number of segments");
  rule.measure(Struct::kReference, policy.shape);
  rule.index(Struct::kLabels, Shape{policy.shape.elements() / 2});
  return policy.shape;
}

bool is_amount(float value) { return std::isfinite(value) && value >= 0.0F; }

template <typename Struct>
Shape require_examples(const Struct& kto, const OperationView& view, ShapeRule& rule) {
  const Shape segments = require_labels(kto, view, rule);
  rule.measure(Struct::kKlSums, Shape{2});
  rule.measure(Struct::kInversePairs, Shape{1});
  rule.require(is_amount(kto.beta), "has a beta that is negative or not finite");
  rule.require(is_amount(kto.desirable_weight) && is_amount(kto.undesirable_weight),
               "has a weight that is negative or not finite");
  return segments;
}

std::string shape_error(const KlEstimate& estimate, const OperationView& view) {
  ShapeRule rule(view);
  require_labels(estimate, view, rule);
  rule.measure(KlEstimate::kSums, Shape{2});
  return rule.error();
}

std::string shape_error(const Kto& kto, const OperationView& view) {
  ShapeRule rule(view);
  require_examples(kto, view, rule);
  rule.measure(Kto::kInverseDesirable, Shape{1});
  rule.measure(Kto::kInverseUndesirable, Shape{1});
  rule.measure(Kto::kMeasures, Shape{kLabelMeasureCount});
  rule.measure(Kto::kLoss, Shape{1});
  return rule.error();
}

std::string shape_error(const KtoGrad& grad, const OperationView& view) {
  ShapeRule rule(view);
  const Shape segments = require_examples(grad, view, rule);
  rule.measure(KtoGrad::kDPolicy, segments);
  return rule.error();
}

Cost cost(const KlEstimate&, const OperationView& view, const Extent&) {
  return streaming_cost(view, view[KlEstimate::kLabels].shape.elements(), kOtherFlops);
}

Cost cost(const Kto&, const OperationView& view, const Extent&) {
  return streaming_cost(view, view[Kto::kLabels].shape.elements(), kExampleFlops);
}

Cost cost(const KtoGrad&, const OperationView& view, const Extent&) {
  return streaming_cost(view, view[KtoGrad::kLabels].shape.elements(), kExampleFlops);
}

// `loss` is the root of the backward pass: its gradient is 1. The reference and the KL estimate are
// constants.
void differentiate(const Kto& kto, const Operation& operation, Tape& tape) {
  const TensorId policy = id_of(operation, Kto::kPolicy);
  if (!tape.wants(policy)) return;
  tape.emit(KtoGrad{kto.beta, kto.desirable_weight, kto.undesirable_weight},
            {policy, id_of(operation, Kto::kReference), id_of(operation, Kto::kLabels),
             id_of(operation, Kto::kKlSums), id_of(operation, Kto::kInversePairs)},
            {tape.contribute(policy)});
}

}  // namespace

SNUG_DEFINE_KIND(KlEstimate);
SNUG_DEFINE_KIND(Kto, .differentiate = differentiate);
SNUG_DEFINE_KIND(KtoGrad);

}  // namespace snug::program
