// A mixture of experts: route tokens, permute their rows by expert, apply each expert's gated mlp
// to its rows, and add up the outputs for each token. Rows are scaled by the router's weights
// before the last product, where the backward pass then does not need that product's output. Where
// experts are balanced, adds the loss that all layers' routes give together.
//
// A shared expert is one more mlp, whose output is added to that of the experts. Its gate is the
// router of a mixture of one expert, whose weight is a sigmoid: every token's rows go to it in
// their own order, and they are scaled before the last product here too.
//
// Router, chosen experts and shared expert may each norm the block's input in a way of their own.
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "models/forward/forward_builder.h"
#include "models/stored/expert_names.h"
#include "program/ir/tensor_names.h"
#include "program/kinds/elementwise/clamped_swiglu.h"
#include "program/kinds/elementwise/elementwise.h"
#include "program/kinds/elementwise/gelu_mul.h"
#include "program/kinds/elementwise/silu_mul.h"
#include "program/kinds/expert/balance_loss.h"
#include "program/kinds/expert/expert_bias.h"
#include "program/kinds/expert/expert_rows.h"
#include "program/kinds/expert/route.h"
#include "program/kinds/norm/rms_norm.h"
#include "program/kinds/product/column_scale.h"
#include "program/kinds/product/embedding.h"
#include "program/kinds/product/grouped_matmul.h"

namespace snug::models {

using program::DType;
using program::Shape;
using program::TensorId;

TensorId ForwardBuilder::router_input(TensorId x, const RouterInput& by) {
  const TensorId normed = activation("router_norm", columns(x));
  builder_.emit(program::RmsNorm{by.epsilon}, {x, weight(by.weight)}, {normed});
  const TensorId scaled = activation("router_input", columns(x));
  builder_.emit(program::Scale{.factor = by.scale}, {normed}, {scaled});
  return scaled;
}

// Each weight times the element of its expert: the elements by id are a list, which multiplies the
// weights as columns of one row.
TensorId ForwardBuilder::with_expert_scales(TensorId weights, TensorId ids,
                                            const std::string& scales) {
  const int64_t count = tokens() * columns(weights);
  const Shape row{1, count};
  const auto make = [&](const char* name, const Shape& shape) {
    return builder_.activation(local_name(name), shape, builder_.program().tensor(weights).dtype);
  };
  const TensorId chosen = make("expert_scales", {count, 1});
  builder_.emit(program::Embedding{.transposed = true},
                {weight(scales), reshaped(ids, "expert_ids.list", {count})}, {chosen});
  const TensorId scaled = make("expert_weights_scaled", row);
  builder_.emit(program::ScaleColumns{},
                {reshaped(weights, "expert_weights.row", row),
                 reshaped(chosen, "expert_scales.list", {count})},
                {scaled});
  return reshaped(scaled, "expert_weights_scaled.chosen", {tokens(), columns(weights)});
}

TensorId ForwardBuilder::experts(TensorId x, const ExpertsBlock& by) {
  const int64_t rows = tokens() * by.chosen;
  const int64_t hidden = columns(x);
  const auto make = [&](const char* name, const Shape& shape, DType type) {
    return builder_.activation(local_name(name), shape, type);
  };
  const auto make_rows = [&](const char* name, int64_t width) {
    return make(name, {rows, width}, options_.compute);
  };
  const Shape chosen{tokens(), by.chosen};
  TensorId weights = make("expert_weights", chosen, DType::f32);
  const TensorId ids = make("expert_ids", chosen, DType::i32);
  const TensorId places = make("expert_places", chosen, DType::i32);
  const TensorId bounds = make("expert_bounds", {by.experts, 2}, DType::i32);
  const TensorId routed_by = by.router_input ? router_input(x, *by.router_input) : x;
  std::vector<TensorId> reads{linear(routed_by, by.router, "router")};
  std::vector<TensorId> writes{weights, ids, places, bounds};
  const bool balances = options_.router_loss > 0;
  if (balances) {
    SNUG_CHECK(balanced_choices_ == 0 || balanced_choices_ == by.chosen,
               "layers that choose {} and {} experts", balanced_choices_, by.chosen);
    balanced_choices_ = by.chosen;
    reads.push_back(query_bounds_);
    writes.push_back(make("expert_counts", {by.experts}, DType::i32));
    writes.push_back(make("expert_sums", {by.experts}, DType::f32));
    balanced_.insert(balanced_.end(), writes.end() - 2, writes.end());
  }
  const bool corrected = !by.correction.empty();
  if (corrected) reads.push_back(weight(by.correction));
  builder_.emit(program::Route{.k = by.chosen,
                               .normalize = by.normalize,
                               .balance = balances,
                               .sigmoid = by.score == RouterScore::sigmoid,
                               .corrected = corrected,
                               .groups = by.groups,
                               .chosen_groups = by.chosen_groups,
                               .scale = by.scale},
                std::move(reads), std::move(writes));
  if (!by.expert_scales.empty()) weights = with_expert_scales(weights, ids, by.expert_scales);
  const TensorId permuted = make_rows("expert_rows", hidden);
  builder_.emit(program::Permute{}, {norm_if(by.norm_before, x, "experts_norm"), places},
                {permuted});
  const bool together = by.files == ExpertFiles::together;
  // x (rows, in) -> (rows, width): multiplies each row by the matrix of its expert.
  const auto product = [&](const std::string& of_module, TensorId of_rows, const char* name,
                           int64_t width) {
    const TensorId result = make_rows(name, width);
    builder_.emit(program::GroupedMatmul{.transpose_b = !together},
                  {of_rows, weight(of_module), bounds}, {result});
    return result;
  };
  const TensorId gated = make_rows("gated", by.inner);
  if (together) {
    TensorId pairs = product(gate_up_name(by), permuted, "gate_up", 2 * by.inner);
    if (by.bias) {
      const TensorId sum = make_rows("gate_up.biased", 2 * by.inner);
      builder_.emit(program::AddExpertBias{}, {pairs, weight(gate_up_bias_name(by)), bounds},
                    {sum});
      pairs = sum;
    }
    builder_.emit(
        program::ClampedSwiglu{.limit = by.clamped_gate.limit, .alpha = by.clamped_gate.alpha},
        {pairs}, {gated});
  } else {
    const TensorId gate_up = product(gate_up_name(by), permuted, "gate_up", 2 * by.inner);
    const auto half = [&](const char* name, int64_t offset) {
      return view(gate_up, name, {rows, by.inner},
                  {.offset = offset, .strides = {2 * by.inner, 1}});
    };
    const TensorId gate = half("gate", 0);
    const TensorId up = half("up", by.inner);
    SNUG_CHECK(by.activation == Activation::silu || by.activation == Activation::gelu_tanh,
               "experts of {} have another activation than silu and gelu's tanh form", by.module);
    if (by.activation == Activation::silu)
      builder_.emit(program::SiluMul{}, {gate, up}, {gated});
    else
      builder_.emit(program::GeluMul{.tanh = true}, {gate, up}, {gated});
  }
  const TensorId weighted = make_rows("gated_weighted", by.inner);
  builder_.emit(program::ScaleRows{}, {gated, weights, places}, {weighted});
  TensorId outputs = product(down_name(by), weighted, "expert_outputs", hidden);
  if (by.bias) {
    const TensorId sum = make_rows("expert_outputs.biased", hidden);
    builder_.emit(program::AddExpertBias{.weighted = true},
                  {outputs, weight(down_bias_name(by)), bounds, weights, places}, {sum});
    outputs = sum;
  }
  const TensorId combined = activation(by.shared ? "routed_output" : "mlp_output", hidden);
  builder_.emit(program::Combine{}, {outputs, places}, {combined});
  const TensorId routed = norm_if(by.norm_after, combined, "experts_output_norm");
  if (!by.shared) return routed;
  const TensorId shared = shared_expert(x, *by.shared);
  const TensorId y = activation("mlp_output", hidden);
  builder_.emit(program::Add{}, {routed, shared}, {y});
  return y;
}

TensorId ForwardBuilder::shared_expert(TensorId x, const SharedExpert& by) {
  TensorId hidden = gated_hidden(norm_if(by.norm_before, x, "shared_norm"), by.mlp, "shared_");
  if (by.gate) {
    const auto make = [&](const char* name, const Shape& shape, DType type) {
      return builder_.activation(local_name(name), shape, type);
    };
    const Shape one{tokens(), 1};
    const TensorId weights = make("shared_weights", one, DType::f32);
    const TensorId places = make("shared_places", one, DType::i32);
    builder_.emit(program::Route{.k = 1, .normalize = false, .sigmoid = true},
                  {linear(x, *by.gate, "shared_gate_logit")},
                  {weights, make("shared_ids", one, DType::i32), places,
                   make("shared_bounds", {1, 2}, DType::i32)});
    const TensorId weighted = activation("shared_gated_weighted", by.mlp.down.in);
    builder_.emit(program::ScaleRows{}, {hidden, weights, places}, {weighted});
    hidden = weighted;
  }
  return norm_if(by.norm_after, linear(hidden, by.mlp.down, "shared_output"), "shared_output_norm");
}

void ForwardBuilder::balance_experts() {
  if (balanced_.empty()) return;
  const auto number = [&](std::string_view name, program::Role role) {
    return declare(std::string(name), {1}, DType::f32, role, program::Lifetime::step);
  };
  std::vector<TensorId> reads{number(program::kInverseDocumentTokensName, program::Role::batch)};
  reads.insert(reads.end(), balanced_.begin(), balanced_.end());
  builder_.emit(program::BalanceLoss{.k = balanced_choices_,
                                     .factor = static_cast<float>(options_.router_loss)},
                std::move(reads), {number(program::kRouterLossName, program::Role::scalar)});
}

}  // namespace snug::models
