#include "program/kinds/optimizer.h"

#include <fmt/format.h>

#include "program/kinds/overloads.h"
#include "program/kinds/shape_rule.h"
#include "program/kinds/traffic.h"

namespace snug::program {

std::string shape_error(const GlobalNorm&, const OperationView& view) {
  ShapeRule rule(view);
  rule.require(!view.operation.reads.empty(), "has no gradient to read");
  if (!rule.counts(view.operation.reads.size(), 1)) return rule.error();
  for (size_t i = 0; i < view.operation.reads.size(); ++i)
    rule.same_type({{"gradient", view.read(i)}});
  rule.measure({"norm", view.write(0)}, Shape{1});
  return rule.error();
}

std::string shape_error(const ClipFactor& clip, const OperationView& view) {
  ShapeRule rule(view);
  rule.require(clip.max_norm >= 0.0F, "has a negative max_norm");
  if (!rule.counts(1, 1)) return rule.error();
  rule.measure({"norm", view.read(0)}, Shape{1});
  rule.measure({"factor", view.write(0)}, Shape{1});
  return rule.error();
}

namespace {

template <typename Attributes>
void require_constants(ShapeRule& rule, const Attributes& adamw) {
  rule.require(adamw.beta1 >= 0.0F && adamw.beta1 < 1.0F, "has a beta1 outside [0, 1)");
  rule.require(adamw.beta2 >= 0.0F && adamw.beta2 < 1.0F, "has a beta2 outside [0, 1)");
  rule.require(adamw.epsilon >= 0.0F, "has a negative epsilon");
  rule.require(adamw.weight_decay >= 0.0F, "has a negative weight_decay");
}

// Gradient, factor, learning rate and step, which every form of AdamW reads, and its weight.
void check_reads(ShapeRule& rule, const OperationView& view) {
  const Tensor& gradient = view.read(0);
  const Tensor& weight = view.update(0);
  rule.measure({"factor", view.read(1)}, Shape{1});
  rule.measure({"learning_rate", view.read(2)}, Shape{1});
  rule.index({"step", view.read(3)}, Shape{1});
  rule.mixed_types({{"weight", weight}, {"gradient", gradient}});
  rule.shape({"gradient", gradient}, weight.shape);
}

}  // namespace

std::string shape_error(const AdamW& adamw, const OperationView& view) {
  ShapeRule rule(view);
  require_constants(rule, adamw);
  const bool has_master = view.operation.updates.size() == 4;
  rule.require(!(has_master && adamw.stochastic), "is stochastic and has a master");
  if (!rule.counts(4, 0, has_master ? 4 : 3)) return rule.error();
  check_reads(rule, view);
  const Tensor& weight = view.update(0);
  // The moments, then the master; without one, the weight is it.
  const auto check_state = [&](const ShapeRule::Operand& state) {
    if (adamw.stochastic)
      rule.type(state, DType::bf16);
    else
      rule.measure(state, weight.shape);
    rule.shape(state, weight.shape);
  };
  check_state({"first moment", view.update(1)});
  check_state({"second moment", view.update(2)});
  check_state({"master", has_master ? view.update(3) : weight});
  return rule.error();
}

std::string shape_error(const AdamW8bit& adamw, const OperationView& view) {
  ShapeRule rule(view);
  require_constants(rule, adamw);
  if (!rule.counts(4, 0, 5)) return rule.error();
  check_reads(rule, view);
  const Shape& shape = view.update(0).shape;
  const Shape scales{state_blocks(shape.elements())};
  constexpr std::string_view kMoments[]{"first moment", "second moment"};
  for (size_t i = 0; i < 2; ++i) {
    rule.type({kMoments[i], view.update(1 + i)}, DType::u8);
    rule.shape({kMoments[i], view.update(1 + i)}, shape);
    rule.measure({"scale", view.update(3 + i)}, scales);
  }
  return rule.error();
}

Cost cost(const GlobalNorm&, const OperationView& view, const Load&) {
  double elements = 0;
  for (size_t i = 0; i < view.operation.reads.size(); ++i)
    elements += static_cast<double>(view.read(i).shape.elements());
  return {2.0 * elements, operand_bytes(view)};
}

Cost cost(const ClipFactor&, const OperationView& view, const Load&) {
  return streaming_cost(view, 1, 3);
}

// Clip (1), decay (2), moments (3 + 4), root and division (5), step (2).
Cost cost(const AdamW&, const OperationView& view, const Load&) {
  return streaming_cost(view, view.update(0).shape.elements(), 17);
}

// The same, and a moment decoded (1), measured (1), divided (1) and encoded (2): twice.
Cost cost(const AdamW8bit&, const OperationView& view, const Load&) {
  return streaming_cost(view, view.update(0).shape.elements(), 17 + 2 * 5);
}

}  // namespace snug::program
