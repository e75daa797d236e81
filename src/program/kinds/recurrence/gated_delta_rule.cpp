#include "program/kinds/recurrence/gated_delta_rule.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "program/ir/tape.h"
#include "program/kinds/functions.h"
#include "program/kinds/rate_names.h"
#include "program/kinds/recurrence/kept_places.h"
#include "program/kinds/shape_rule.h"
#include "program/kinds/traffic.h"

namespace snug::program {
namespace {

template <typename Struct>
ShapeRule rule_of(const Struct& delta, const OperationView& view) {
  ShapeRule rule(view);
  rule.rank(Struct::kQ, 2);
  rule.rank(Struct::kV, 2);
  rule.rank(Struct::kBounds, 2);
  rule.require(
      delta.key_heads > 0 && delta.value_heads > 0 && delta.value_heads % delta.key_heads == 0,
      "has value heads that are no multiple of its key heads");
  if (!rule.error().empty()) return rule;
  const Shape& q = view[Struct::kQ].shape;
  const Shape& v = view[Struct::kV].shape;
  rule.require(q[1] > 0 && q[1] % delta.key_heads == 0, "has rows of q that are no whole heads");
  rule.require(v[1] > 0 && v[1] % delta.value_heads == 0, "has rows of v that are no whole heads");
  rule.shape(Struct::kK, q);
  rule.shape(Struct::kV, Shape{q[0], v[1]});
  rule.measure(Struct::kG, Shape{q[0], delta.value_heads});
  rule.measure(Struct::kBeta, Shape{q[0], delta.value_heads});
  rule.index(Struct::kBounds, Shape{view[Struct::kBounds].shape[0], 2});
  rule.mixed_types({Struct::kQ, Struct::kK, Struct::kV, Struct::kG, Struct::kBeta});
  return rule;
}

std::string shape_error(const GatedDeltaRule& delta, const OperationView& view) {
  ShapeRule rule = rule_of(delta, view);
  if (!rule.error().empty()) return rule.error();
  rule.shape(GatedDeltaRule::kO, view[GatedDeltaRule::kV].shape);
  rule.mixed_types({GatedDeltaRule::kQ, GatedDeltaRule::kO});
  if (!delta.cached) return rule.error();
  rule.rank(GatedDeltaRule::kState, 2);
  if (!rule.error().empty()) return rule.error();
  const DeltaShape shape = delta_shape(delta, view);
  rule.index(GatedDeltaRule::kSlots, view[GatedDeltaRule::kBounds].shape);
  rule.measure(GatedDeltaRule::kState, Shape{view[GatedDeltaRule::kState].shape[0],
                                             shape.value_heads * shape.dk * shape.dv});
  rule.mixed_types({GatedDeltaRule::kQ, GatedDeltaRule::kState});
  return rule.error();
}

std::string shape_error(const GatedDeltaRuleGrad& delta, const OperationView& view) {
  using Grad = GatedDeltaRuleGrad;
  ShapeRule rule = rule_of(delta, view);
  if (!rule.error().empty()) return rule.error();
  rule.shape(Grad::kDO, view[Grad::kV].shape);
  rule.shape(Grad::kDQ, view[Grad::kQ].shape);
  rule.shape(Grad::kDK, view[Grad::kK].shape);
  rule.shape(Grad::kDV, view[Grad::kV].shape);
  rule.measure(Grad::kDG, view[Grad::kG].shape);
  rule.measure(Grad::kDBeta, view[Grad::kBeta].shape);
  rule.mixed_types({Grad::kQ, Grad::kDO, Grad::kDQ, Grad::kDK, Grad::kDV, Grad::kDG, Grad::kDBeta});
  return rule.error();
}

// FLOPs of one value head at one token: a product with the state, (dk, dv), for what it holds of
// the key, for what the query reads, and for the update; and with the chunk's other tokens, of
// which half are before it on average, scores of keys and of queries, (chunk, dk) each, and their
// values twice, (chunk, dv).
double state_flops(const DeltaShape& shape) {
  const auto dk = static_cast<double>(shape.dk);
  const auto dv = static_cast<double>(shape.dv);
  const auto chunk = static_cast<double>(kDeltaChunkTokens);
  const double token = 2.0 * (3.0 * dk * dv + 0.5 * chunk * (2.0 * dk + 2.0 * dv));
  return static_cast<double>(shape.tokens * shape.value_heads) * token;
}

// Of the places for states those of the segments are read and written.
Cost cost(const GatedDeltaRule& delta, const OperationView& view, const Extent&) {
  Cost cost{state_flops(delta_shape(delta, view)), operand_bytes(view)};
  if (delta.cached)
    cost.bytes -= bytes_of_unused_places(view[GatedDeltaRule::kState],
                                         view[GatedDeltaRule::kBounds].shape[0]);
  return cost;
}

// The states again, which is the forward pass but for the queries, and two products for each of
// its products. States between chunks are written and read.
Cost cost(const GatedDeltaRuleGrad& delta, const OperationView& view, const Extent&) {
  const DeltaShape shape = delta_shape(delta, view);
  const auto states =
      static_cast<double>(shape.chunks() * shape.value_heads * shape.dk * shape.dv) * 4.0;
  return {3.0 * state_flops(shape), operand_bytes(view) + 2.0 * states};
}

template <typename Struct>
RateKey delta_key(const Struct& delta, const OperationView& view) {
  const DeltaShape shape = delta_shape(delta, view);
  RateKey key{.form = typed_form(view)};
  key.shape = {rate_size(shape.tokens) * rate_size(shape.value_heads), rate_size(shape.dk),
               rate_size(shape.dv)};
  key.unit = Work::flops;
  key.multiplies = view[Struct::kG].dtype;
  return key;
}

RateKey rate_key(const GatedDeltaRule& delta, const OperationView& view, const Extent&) {
  return delta_key(delta, view);
}

RateKey rate_key(const GatedDeltaRuleGrad& delta, const OperationView& view, const Extent&) {
  return delta_key(delta, view);
}

void differentiate(const GatedDeltaRule& delta, const Operation& operation, Tape& tape) {
  const auto id = [&](const Operand<GatedDeltaRule>& operand) { return id_of(operation, operand); };
  const TensorId d_o = tape.gradient(id(GatedDeltaRule::kO));
  const std::vector<TensorId> inputs{id(GatedDeltaRule::kQ), id(GatedDeltaRule::kK),
                                     id(GatedDeltaRule::kV), id(GatedDeltaRule::kG),
                                     id(GatedDeltaRule::kBeta)};
  const auto wants = [&](TensorId input) { return tape.wants(input); };
  if (d_o == kNone || std::ranges::none_of(inputs, wants)) return;
  std::vector<TensorId> reads{d_o};
  std::vector<TensorId> writes;
  reads.reserve(inputs.size() + 2);
  writes.reserve(inputs.size());
  for (const TensorId input_id : inputs) {
    const Tensor input = tape.program().tensor(input_id);  // a copy, since the table may grow
    reads.push_back(input_id);
    writes.push_back(tape.wants(input_id) ? tape.contribute(input_id)
                                          : tape.temporary("unused", input.shape, input.dtype));
  }
  reads.push_back(id(GatedDeltaRule::kBounds));
  tape.emit(GatedDeltaRuleGrad{.key_heads = delta.key_heads, .value_heads = delta.value_heads},
            std::move(reads), std::move(writes));
}

}  // namespace

SNUG_DEFINE_KIND(GatedDeltaRule, .differentiate = differentiate, .rate_key = rate_key);
SNUG_DEFINE_KIND(GatedDeltaRuleGrad, .rate_key = rate_key);

}  // namespace snug::program
