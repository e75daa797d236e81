// A mixture of experts: route, permute to rows by expert, the gated mlp of each expert on its rows,
// and the sum of what a token's experts give. Rows are scaled by the router's weights before the
// last product, where that needs no output of it in the backward pass.
#include <utility>

#include "models/expert_names.h"
#include "models/forward_builder.h"

namespace snug::models {

using program::DType;
using program::Shape;
using program::TensorId;

TensorId ForwardBuilder::experts(TensorId x, const ExpertsBlock& by) {
  const int64_t rows = options_.tokens * by.chosen;
  const int64_t hidden = columns(x);
  const auto make = [&](const char* name, const Shape& shape, DType type) {
    return builder_.activation(local_name(name), shape, type);
  };
  const auto make_rows = [&](const char* name, int64_t width) {
    return make(name, {rows, width}, options_.compute);
  };
  const Shape chosen{options_.tokens, by.chosen};
  const TensorId weights = make("expert_weights", chosen, DType::f32);
  const TensorId ids = make("expert_ids", chosen, DType::i32);
  const TensorId places = make("expert_places", chosen, DType::i32);
  const TensorId bounds = make("expert_bounds", {by.experts, 2}, DType::i32);
  builder_.emit(program::Route{.k = by.chosen, .normalize = by.normalize},
                {linear(x, by.router, "router")}, {weights, ids, places, bounds});
  const TensorId permuted = make_rows("expert_rows", hidden);
  builder_.emit(program::Permute{}, {x, places}, {permuted});
  const TensorId gate_up = make_rows("gate_up", 2 * by.inner);
  builder_.emit(program::GroupedMatmul{.transpose_b = true},
                {permuted, weight(gate_up_name(by)), bounds}, {gate_up});
  const auto half = [&](const char* name, int64_t offset) {
    return view(gate_up, name, {rows, by.inner}, {.offset = offset, .strides = {2 * by.inner, 1}});
  };
  const TensorId gate = half("gate", 0);
  const TensorId up = half("up", by.inner);
  const TensorId gated = make_rows("gated", by.inner);
  builder_.emit(program::SiluMul{}, {gate, up}, {gated});
  const TensorId weighted = make_rows("gated_weighted", by.inner);
  builder_.emit(program::ScaleRows{}, {gated, weights, places}, {weighted});
  const TensorId outputs = make_rows("expert_outputs", hidden);
  builder_.emit(program::GroupedMatmul{.transpose_b = true},
                {weighted, weight(down_name(by)), bounds}, {outputs});
  const TensorId y = activation("mlp_output", hidden);
  builder_.emit(program::Combine{}, {outputs, places}, {y});
  return y;
}

}  // namespace snug::models
