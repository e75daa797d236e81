// Layers with a recurrent state in place of attention.
#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "models/forward/forward_builder.h"
#include "program/ir/tensor_names.h"
#include "program/kinds/elementwise/elementwise.h"
#include "program/kinds/elementwise/multiply.h"
#include "program/kinds/elementwise/silu_mul.h"
#include "program/kinds/recurrence/causal_convolution.h"
#include "program/kinds/recurrence/delta_gates.h"
#include "program/kinds/recurrence/gated_delta_rule.h"

namespace snug::models {

using namespace program;  // NOLINT: this file speaks the program's words throughout

std::string state_slots_name() { return fmt::format("state.{}", kSlotsName); }

// The place of each segment's states, in all layers.
TensorId ForwardBuilder::state_slots() {
  const std::string name = state_slots_name();
  const TensorId known = builder_.program().find(input_name(name));
  return known != kNone ? known : batch(name, {options_.segments, 2});
}

// What a layer keeps for each sequence, in a row of its own.
TensorId ForwardBuilder::kept_state(std::string_view name, int64_t columns, DType type) {
  return declare(local_name(name), {options_.cache.sequences, columns}, type, Role::kv_cache,
                 Lifetime::step, builder_.layer());
}

TensorId ForwardBuilder::convolve(TensorId x, TensorId filters, std::string_view name, bool plain) {
  const int64_t kept = builder_.program().tensor(filters).shape[2] - 1;  // rows
  CausalConvolution convolution{.plain = plain};
  std::vector<TensorId> reads{x, filters, query_bounds_};
  std::vector<TensorId> updates;
  if (options_.cache.is_kept() && kept > 0) {
    convolution.cached = true;
    reads.push_back(state_slots());
    updates.push_back(
        kept_state(fmt::format("{}_state", name), kept * columns(x), options_.compute));
  }
  const TensorId y = activation(name, columns(x));
  builder_.emit(convolution, std::move(reads), {y}, std::move(updates));
  return y;
}

TensorId ForwardBuilder::short_convolution(TensorId x, const ShortConvolutionBlock& by) {
  const int64_t width = by.output.in;
  const TensorId parts = linear(x, by.input, "bcx");
  const TensorId b = columns_of(parts, "b", 0, width);
  const TensorId c = columns_of(parts, "c", width, width);
  const TensorId opened = activation("opened", width);
  builder_.emit(Multiply{}, {b, columns_of(parts, "x", 2 * width, width)}, {opened});
  const TensorId mixed =
      convolve(opened, weight(weight_name(by.convolution)), "convolution", /*plain=*/true);
  const TensorId closed = activation("closed", width);
  builder_.emit(Multiply{}, {c, mixed}, {closed});
  return linear(closed, by.output, "convolution_output");
}

ForwardBuilder::DeltaInputs ForwardBuilder::delta_inputs(TensorId x, const GatedDeltaBlock& by) {
  const int64_t keys = by.key_heads * by.key_dim;
  const int64_t values = by.value_heads * by.value_dim;
  const TensorId projected = linear(x, by.query_key_value, "qkv");
  DeltaInputs inputs;
  inputs.z = linear(x, by.gate, "z");
  inputs.b = linear(x, by.beta, "b");
  inputs.a = linear(x, by.decay, "a");
  const TensorId mixed = convolve(projected, weight(weight_name(by.convolution)), "convolution");
  inputs.q = columns_of(mixed, "q", 0, keys);
  inputs.k = columns_of(mixed, "k", keys, keys);
  inputs.v = columns_of(mixed, "v", 2 * keys, values);
  return inputs;
}

// Each part is copied out of its groups. Queries, keys and values are then convolved each by
// itself, with its own of the filters.
ForwardBuilder::DeltaInputs ForwardBuilder::grouped_delta_inputs(TensorId x,
                                                                 const GatedDeltaBlock& by) {
  const int64_t sharing = by.value_heads / by.key_heads;
  const int64_t values = sharing * by.value_dim;  // of the value heads of a key head
  const TensorId all = linear(x, by.query_key_value, "qkvz");
  const TensorId both = linear(x, by.beta, "ba");
  const auto part = [&](TensorId of, const char* name, int64_t offset, int64_t width) {
    const TensorId rows =
        part_of_groups(of, fmt::format("{}.in_groups", name),
                       {.groups = by.key_heads, .offset = offset, .width = width});
    return copy_of_groups(rows, name, by.key_heads);
  };
  // Parts of a copy: a weight has no views, since it may be gathered or come from the host.
  const Shape shape{by.convolved_columns(), 1, by.convolution_width};
  const TensorId filters = builder_.activation(local_name("filters"), shape, options_.compute);
  builder_.emit(Scale{.factor = 1.0F}, {weight(weight_name(by.convolution))}, {filters});
  int64_t first = 0;
  const auto convolved = [&](const char* name, int64_t offset, int64_t width) {
    const TensorId rows = part(all, fmt::format("{}.projected", name).c_str(), offset, width);
    const Shape own{columns(rows), 1, by.convolution_width};
    const TensorId of_rows =
        view(filters, fmt::format("{}.filters", name), own,
             {.offset = first * by.convolution_width, .strides = dense_strides(own)});
    first += columns(rows);
    return convolve(rows, of_rows, fmt::format("{}_convolution", name));
  };
  DeltaInputs inputs;
  inputs.q = convolved("q", 0, by.key_dim);
  inputs.k = convolved("k", by.key_dim, by.key_dim);
  inputs.v = convolved("v", 2 * by.key_dim, values);
  inputs.z = part(all, "z", 2 * by.key_dim + values, values);
  inputs.b = part(both, "b", 0, sharing);
  inputs.a = part(both, "a", sharing, sharing);
  return inputs;
}

TensorId ForwardBuilder::gated_delta(TensorId x, const GatedDeltaBlock& by) {
  const int64_t values = by.value_heads * by.value_dim;
  const auto [q, k, v, z, b, a] = by.is_grouped ? grouped_delta_inputs(x, by) : delta_inputs(x, by);
  const DType wide = options_.compute == DType::f64 ? DType::f64 : DType::f32;
  const Shape gates{tokens(), by.value_heads};
  const TensorId g = builder_.activation(local_name("g"), gates, wide);
  const TensorId beta = builder_.activation(local_name("beta"), gates, wide);
  builder_.emit(DeltaGates{}, {a, b, weight(by.decay_rate), weight(by.decay_bias)}, {g, beta});
  const TensorId o = activation("delta", values);
  GatedDeltaRule rule{.key_heads = by.key_heads, .value_heads = by.value_heads};
  std::vector<TensorId> reads{q, k, v, g, beta, query_bounds_};
  std::vector<TensorId> updates;
  if (options_.cache.is_kept()) {
    rule.cached = true;
    reads.push_back(state_slots());
    updates.push_back(kept_state("delta_state", by.value_heads * by.key_dim * by.value_dim, wide));
  }
  builder_.emit(rule, std::move(reads), {o}, std::move(updates));
  const Shape heads{tokens() * by.value_heads, by.value_dim};
  const TensorId normed = builder_.activation(local_name("delta_norm"), heads, options_.compute);
  emit_norm(reshaped(o, "delta.heads", heads), by.norm, normed);
  const TensorId gated = activation("delta_gated", values);
  builder_.emit(SiluMul{}, {z, reshaped(normed, "delta_norm.rows", {tokens(), values})}, {gated});
  return linear(gated, by.output, "delta_output");
}

}  // namespace snug::models
