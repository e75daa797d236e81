#include "program/kinds/loss/grpo.h"

#include <cmath>
#include <vector>

#include "program/ir/tape.h"
#include "program/kinds/functions.h"
#include "program/kinds/shape_rule.h"
#include "program/kinds/traffic.h"

namespace snug::program {
namespace {

// Operations per token: two exponentials, the clipped gain and the divergence.
constexpr double kRewardedTokenFlops = 32;

bool is_bound(float value) { return std::isfinite(value) && value >= 0.0F; }

// Checks the operands and attributes that both kinds share.
template <typename Struct>
void require_answers(const Struct& grpo, const OperationView& view, ShapeRule& rule) {
  const Shape& tokens = view[Struct::kPolicy].shape;
  const Shape& segments = view[Struct::kAdvantages].shape;
  rule.rank(Struct::kPolicy, 1);
  rule.rank(Struct::kAdvantages, 1);
  rule.measure(Struct::kPolicy, tokens);
  rule.measure(Struct::kAdvantages, segments);
  rule.index(Struct::kBounds, Shape{segments.elements(), 2});
  rule.measure(Struct::kWeights, tokens);
  if (grpo.old) rule.measure(Struct::kOld, tokens);
  if (grpo.reference) rule.measure(Struct::kReference, tokens);
  rule.require(is_bound(grpo.epsilon) && is_bound(grpo.epsilon_high) && is_bound(grpo.delta),
               "has a bound of the ratio that is negative or not finite");
  rule.require(is_bound(grpo.beta), "has a beta that is negative or not finite");
}

std::string shape_error(const Grpo& grpo, const OperationView& view) {
  ShapeRule rule(view);
  require_answers(grpo, view, rule);
  rule.measure(Grpo::kInverseTokens, Shape{1});
  rule.measure(Grpo::kInverseSequences, Shape{1});
  rule.measure(Grpo::kTerms, Shape{view[Grpo::kAdvantages].shape.elements(), kRewardedTermCount});
  rule.measure(Grpo::kMeasures, Shape{kRewardedMeasureCount});
  rule.measure(Grpo::kLoss, Shape{1});
  return rule.error();
}

std::string shape_error(const GrpoGrad& grad, const OperationView& view) {
  ShapeRule rule(view);
  require_answers(grad, view, rule);
  rule.measure(GrpoGrad::kDPolicy, view[GrpoGrad::kPolicy].shape);
  return rule.error();
}

Cost cost(const Grpo&, const OperationView& view, const Extent&) {
  return streaming_cost(view, view[Grpo::kPolicy].shape.elements(), kRewardedTokenFlops);
}

Cost cost(const GrpoGrad&, const OperationView& view, const Extent&) {
  return streaming_cost(view, view[GrpoGrad::kPolicy].shape.elements(), kRewardedTokenFlops);
}

// `loss` is the root of the backward pass: its gradient is 1. What the answers were made with and
// the reference are constants.
void differentiate(const Grpo& grpo, const Operation& operation, Tape& tape) {
  const TensorId policy = id_of(operation, Grpo::kPolicy);
  if (!tape.wants(policy)) return;
  std::vector<TensorId> reads{policy, id_of(operation, Grpo::kBounds),
                              id_of(operation, Grpo::kAdvantages),
                              id_of(operation, Grpo::kWeights)};
  if (grpo.old) reads.push_back(id_of(operation, Grpo::kOld));
  if (grpo.reference) reads.push_back(id_of(operation, Grpo::kReference));
  tape.emit(GrpoGrad{.epsilon = grpo.epsilon,
                     .epsilon_high = grpo.epsilon_high,
                     .delta = grpo.delta,
                     .beta = grpo.beta,
                     .sequence = grpo.sequence,
                     .old = grpo.old,
                     .reference = grpo.reference,
                     .corrected = grpo.corrected},
            std::move(reads), {tape.contribute(policy)});
}

}  // namespace

SNUG_DEFINE_KIND(Grpo, .differentiate = differentiate);
SNUG_DEFINE_KIND(GrpoGrad);

}  // namespace snug::program
