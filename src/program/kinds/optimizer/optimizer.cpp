#include "program/kinds/optimizer/optimizer.h"

#include <fmt/format.h>

#include "program/kinds/functions.h"
#include "program/kinds/optimizer/optimizer_rule.h"
#include "program/kinds/rate_names.h"
#include "program/kinds/shape_rule.h"
#include "program/kinds/traffic.h"

namespace snug::program {
namespace {

std::string shape_error(const GlobalNorm&, const OperationView& view) {
  ShapeRule rule(view);
  for (const TensorId gradient : view.operation.reads)
    rule.mixed_types({{GlobalNorm::kGradients.name.text, view.program.tensor(gradient)}});
  rule.measure(GlobalNorm::kNorm, Shape{1});
  return rule.error();
}

std::string shape_error(const ClipFactor& clip, const OperationView& view) {
  ShapeRule rule(view);
  rule.require(clip.max_norm >= 0.0F, "has a negative max_norm");
  rule.measure(ClipFactor::kNorm, Shape{1});
  rule.measure(ClipFactor::kFactor, Shape{1});
  return rule.error();
}

template <typename Struct>
void check_adamw(ShapeRule& rule, const Struct& adamw, const OperationView& view) {
  check_betas(rule, adamw);
  rule.require(adamw.epsilon >= 0.0F, "has a negative epsilon");
  rule.require(adamw.weight_decay >= 0.0F, "has a negative weight_decay");
  rule.index(Struct::kStep, Shape{1});
  check_step(rule, adamw, view);
}

std::string shape_error(const AdamW& adamw, const OperationView& view) {
  ShapeRule rule(view);
  check_adamw(rule, adamw, view);
  rule.require(!(adamw.has_master && adamw.stochastic), "is stochastic and has a master");
  const Tensor& weight = view[AdamW::kWeight];
  // The state tensors are the moments, then the master; without a master, the weight takes its
  // place.
  const auto check_state = [&](const Operand<AdamW>& state) {
    if (adamw.stochastic)
      rule.type(state, DType::bf16);
    else
      rule.measure(state, weight.shape);
    rule.shape(state, weight.shape);
  };
  check_state(AdamW::kFirstMoment);
  check_state(AdamW::kSecondMoment);
  check_state(adamw.has_master ? AdamW::kMaster : AdamW::kWeight);
  return rule.error();
}

std::string shape_error(const AdamW8bit& adamw, const OperationView& view) {
  ShapeRule rule(view);
  check_adamw(rule, adamw, view);
  const Shape& shape = view[AdamW8bit::kWeight].shape;
  const Shape scales{state_blocks(shape.elements())};
  for (const auto& moment : {AdamW8bit::kFirstMoment, AdamW8bit::kSecondMoment}) {
    rule.type(moment, DType::u8);
    rule.shape(moment, shape);
  }
  for (const auto& scale : {AdamW8bit::kFirstScale, AdamW8bit::kSecondScale})
    rule.measure(scale, scales);
  return rule.error();
}

Cost cost(const GlobalNorm&, const OperationView& view, const Extent&) {
  double elements = 0;
  for (const TensorId gradient : view.operation.reads)
    elements += static_cast<double>(view.program.tensor(gradient).shape.elements());
  return {2.0 * elements, operand_bytes(view)};
}

Cost cost(const ClipFactor&, const OperationView& view, const Extent&) {
  return streaming_cost(view, 1, 3);
}

// Operations per element: clip (1), decay (2), moments (3 + 4), root and division (5), step (2).
Cost cost(const AdamW&, const OperationView& view, const Extent&) {
  return streaming_cost(view, view[AdamW::kWeight].shape.elements(), 17);
}

// Operations per element: AdamW's step (17), and for each of the two moments: decode (1), find the
// maximum (1), divide (1), encode (2).
Cost cost(const AdamW8bit&, const OperationView& view, const Extent&) {
  return streaming_cost(view, view[AdamW8bit::kWeight].shape.elements(), 17 + 2 * 5);
}

// The tensors are processed one after the other, so the rate depends on the size of a tensor, not
// on their number.
RateKey rate_key(const GlobalNorm& norm, const OperationView& view, const Extent& extent) {
  const auto tensors = static_cast<int64_t>(view.operation.reads.size());
  return {
      .form = {.kind = name_of(Kind::global_norm), .reads = {view[GlobalNorm::kGradients].dtype}},
      .shape = {std::max(1.0, cost(norm, view, extent).bytes / rate_size(tensors))}};
}

template <typename Struct>
RateKey optimizer_key(const Struct& adamw, OptimizerForm form, const OperationView& view,
                      const Extent& extent) {
  RateKey key = key_of_bytes(view, cost(adamw, view, extent));
  key.optimizer = {form, rate_size(view[Struct::kWeight].shape.elements())};
  return key;
}

RateKey rate_key(const AdamW& adamw, const OperationView& view, const Extent& extent) {
  return optimizer_key(adamw, adamw.stochastic ? OptimizerForm::stochastic : OptimizerForm::f32,
                       view, extent);
}

RateKey rate_key(const AdamW8bit& adamw, const OperationView& view, const Extent& extent) {
  return optimizer_key(adamw, OptimizerForm::coded, view, extent);
}

}  // namespace

SNUG_DEFINE_KIND(GlobalNorm, .rate_key = rate_key);
SNUG_DEFINE_KIND(ClipFactor);
SNUG_DEFINE_KIND(AdamW, .rate_key = rate_key);
SNUG_DEFINE_KIND(AdamW8bit, .rate_key = rate_key);

}  // namespace snug::program
