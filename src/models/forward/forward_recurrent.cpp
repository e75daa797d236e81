// Layers with a recurrent state in place of attention.
#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "models/forward/forward_builder.h"
#include "program/ir/tensor_names.h"
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

void ForwardBuilder::convolve(TensorId x, const GatedDeltaBlock& by, TensorId y) {
  CausalConvolution convolution;
  std::vector<TensorId> reads{x, weight(weight_name(by.convolution)), query_bounds_};
  std::vector<TensorId> updates;
  const int64_t kept = by.convolution_width - 1;  // rows
  if (options_.cache.is_kept() && kept > 0) {
    convolution.cached = true;
    reads.push_back(state_slots());
    updates.push_back(
        kept_state("convolution_state", kept * by.query_key_value.out, options_.compute));
  }
  builder_.emit(convolution, std::move(reads), {y}, std::move(updates));
}

TensorId ForwardBuilder::gated_delta(TensorId x, const GatedDeltaBlock& by) {
  const int64_t keys = by.key_heads * by.key_dim;
  const int64_t values = by.value_heads * by.value_dim;
  const TensorId projected = linear(x, by.query_key_value, "qkv");
  const TensorId z = linear(x, by.gate, "z");
  const TensorId b = linear(x, by.beta, "b");
  const TensorId a = linear(x, by.decay, "a");
  const TensorId mixed = activation("convolved", by.query_key_value.out);
  convolve(projected, by, mixed);
  const DType wide = options_.compute == DType::f64 ? DType::f64 : DType::f32;
  const Shape gates{tokens(), by.value_heads};
  const TensorId g = builder_.activation(local_name("g"), gates, wide);
  const TensorId beta = builder_.activation(local_name("beta"), gates, wide);
  builder_.emit(DeltaGates{}, {a, b, weight(by.decay_rate), weight(by.decay_bias)}, {g, beta});
  const TensorId o = activation("delta", values);
  GatedDeltaRule rule{.key_heads = by.key_heads, .value_heads = by.value_heads};
  std::vector<TensorId> reads{columns_of(mixed, "q", 0, keys),
                              columns_of(mixed, "k", keys, keys),
                              columns_of(mixed, "v", 2 * keys, values),
                              g,
                              beta,
                              query_bounds_};
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
