#include "program/kinds/optimizer/adafactor.h"

#include "program/kinds/functions.h"
#include "program/kinds/optimizer/optimizer_rule.h"
#include "program/kinds/traffic.h"

namespace snug::program {
namespace {

std::string shape_error(const Adafactor& adafactor, const OperationView& view) {
  ShapeRule rule(view);
  rule.require(adafactor.decay_rate < 0.0F, "has a decay_rate that is not below 0");
  rule.require(adafactor.epsilon > 0.0F, "has an epsilon that is not above 0");
  rule.require(adafactor.clip_threshold > 0.0F, "has a clip_threshold that is not above 0");
  rule.require(adafactor.weight_decay >= 0.0F, "has a negative weight_decay");
  rule.index(Adafactor::kStep, Shape{1});
  check_step(rule, adafactor, view);
  check_master(rule, adafactor, view);
  const Tensor& weight = view[Adafactor::kWeight];
  if (!adafactor.factored) {
    rule.measure(Adafactor::kRows, weight.shape);
    return rule.error();
  }
  rule.rank(Adafactor::kWeight, 2);
  if (!rule.error().empty()) return rule.error();
  rule.measure(Adafactor::kRows, Shape{weight.shape[0]});
  rule.measure(Adafactor::kColumns, Shape{weight.shape[1]});
  return rule.error();
}

// The gradient is read three times: for the moments, for the size of the update, and for the step.
// Operations per element: clip (3), squares and their sums (4), the update and its square (4), step
// (4).
Cost cost(const Adafactor&, const OperationView& view, const Extent&) {
  Cost cost = streaming_cost(view, view[Adafactor::kWeight].shape.elements(), 15);
  cost.bytes += 2.0 * static_cast<double>(view[Adafactor::kGradient].bytes());
  return cost;
}

}  // namespace

SNUG_DEFINE_KIND(Adafactor);

}  // namespace snug::program
