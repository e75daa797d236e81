#include "program/kinds/norm/layer_norm.h"

#include "program/ir/tape.h"
#include "program/kinds/elementwise/elementwise.h"
#include "program/kinds/functions.h"
#include "program/kinds/shape_rule.h"
#include "program/kinds/traffic.h"

namespace snug::program {
namespace {

std::string shape_error(const LayerNorm& norm, const OperationView& view) {
  ShapeRule rule(view);
  rule.require(norm.epsilon >= 0.0F, "has a negative epsilon");
  const Tensor& x = view[LayerNorm::kX];
  rule.rank(LayerNorm::kX, 2);
  rule.shape(LayerNorm::kW, Shape{x.shape[1]});
  rule.shape(LayerNorm::kY, x.shape);
  rule.mixed_types({LayerNorm::kX, LayerNorm::kW, LayerNorm::kY});
  if (norm.bias) {
    rule.shape(LayerNorm::kBias, Shape{x.shape[1]});
    rule.mixed_types({LayerNorm::kX, LayerNorm::kBias});
  }
  return rule.error();
}

std::string shape_error(const LayerNormGrad& norm, const OperationView& view) {
  ShapeRule rule(view);
  rule.require(norm.epsilon >= 0.0F, "has a negative epsilon");
  rule.require(!norm.accumulate || norm.weight_gradient,
               "accumulates a weight gradient that it does not make");
  const Tensor& x = view[LayerNormGrad::kX];
  rule.rank(LayerNormGrad::kX, 2);
  rule.shape(LayerNormGrad::kDY, x.shape);
  rule.shape(LayerNormGrad::kW, Shape{x.shape[1]});
  rule.shape(LayerNormGrad::kDX, x.shape);
  rule.mixed_types({LayerNormGrad::kX, LayerNormGrad::kDY, LayerNormGrad::kW, LayerNormGrad::kDX});
  if (norm.addend) {
    rule.shape(LayerNormGrad::kAddend, x.shape);
    rule.mixed_types({LayerNormGrad::kX, LayerNormGrad::kAddend});
  }
  if (norm.weight_gradient) {
    rule.shape(LayerNormGrad::kDW, Shape{x.shape[1]});
    rule.mixed_types({LayerNormGrad::kX, LayerNormGrad::kDW});
  }
  return rule.error();
}

// Operations per element: a sum, a difference, its square and the sum of these, scale, weight,
// bias.
Cost cost(const LayerNorm& norm, const OperationView& view, const Extent&) {
  return streaming_cost(view, view[LayerNorm::kX].shape.elements(), norm.bias ? 7 : 6);
}

// Operations per element: the statistics again (4), dy * w and its sum (2), its product with the
// normalised x and the sum of these (3), dx (4), the addend, and dy * normalised x, summed for the
// weight (2).
Cost cost(const LayerNormGrad& norm, const OperationView& view, const Extent&) {
  const double flops = 13.0 + (norm.addend ? 1.0 : 0.0) + (norm.weight_gradient ? 2.0 : 0.0);
  return streaming_cost(view, view[LayerNormGrad::kX].shape.elements(), flops);
}

void differentiate(const LayerNorm& norm, const Operation& operation, Tape& tape) {
  const TensorId dy = tape.gradient(id_of(operation, LayerNorm::kY));
  if (dy == kNone) return;
  const TensorId x = id_of(operation, LayerNorm::kX);
  const TensorId w = id_of(operation, LayerNorm::kW);
  const TensorId bias = id_of(operation, LayerNorm::kBias);
  if (norm.bias && tape.wants(bias)) tape.emit(SumRows{}, {dy}, {tape.contribute(bias)});
  const bool wants_w = tape.wants(w);
  if (!tape.wants(x) && !wants_w) return;
  // Copied, since the program's table grows below.
  const Tensor input = tape.program().tensor(x);
  std::vector<TensorId> writes{tape.wants(x) ? tape.contribute(x)
                                             : tape.temporary("dx", input.shape, input.dtype)};
  if (wants_w) writes.push_back(tape.contribute(w));
  LayerNormGrad grad;
  grad.epsilon = norm.epsilon;
  grad.weight_gradient = wants_w;
  tape.emit(grad, {dy, x, w}, std::move(writes));
}

}  // namespace

SNUG_DEFINE_KIND(LayerNorm, .differentiate = differentiate);
SNUG_DEFINE_KIND(LayerNormGrad);

}  // namespace snug::program
