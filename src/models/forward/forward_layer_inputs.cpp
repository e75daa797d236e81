// What layers read besides the residual stream: a part of a row of a second embedding.
#include "base/error.h"
#include "models/forward/forward_builder.h"
#include "program/kinds/elementwise/elementwise.h"
#include "program/kinds/elementwise/gelu_mul.h"
#include "program/kinds/product/embedding.h"

namespace snug::models {

using namespace program;  // NOLINT: this file speaks the program's words throughout

void ForwardBuilder::make_layer_inputs(TensorId ids, TensorId embedded) {
  if (!stack_.layer_inputs) return;
  const LayerInputs& by = *stack_.layer_inputs;
  const int64_t width = layers() * by.width;
  const auto scaled = [&](TensorId x, float factor, const char* name) {
    if (factor == 1.0F) return x;
    const TensorId y = activation(name, columns(x));
    builder_.emit(Scale{.factor = factor}, {x}, {y});
    return y;
  };
  const TensorId rows = activation("layer_inputs.rows", width);
  builder_.emit(Embedding{}, {weight_named(weight_name(by.table)), ids}, {rows});
  const TensorId of_token =
      scaled(rows, by.sum_scale * in_compute_type(by.table_scale), "layer_inputs.of_token");
  const TensorId projected = scaled(linear_named(embedded, by.projection, "layer_inputs.product"),
                                    by.projection_scale, "layer_inputs.projected");
  const Shape parts{tokens() * layers(), by.width};
  const TensorId normed =
      builder_.activation(local_name("layer_inputs.normed"), parts, options_.compute);
  emit_norm(reshaped(projected, "layer_inputs.parts", parts), by.norm, normed);
  const TensorId of_hidden = scaled(reshaped(normed, "layer_inputs.whole", {tokens(), width}),
                                    by.sum_scale, "layer_inputs.of_hidden");
  layer_inputs_ = activation("layer_inputs", width);
  builder_.emit(Add{}, {of_hidden, of_token}, {layer_inputs_});
}

TensorId ForwardBuilder::with_layer_input(TensorId x, const LayerInputBlock& by) {
  SNUG_CHECK(by.activation == Activation::gelu_tanh,
             "{} of another activation than gelu's tanh form", by.gate.module);
  const TensorId gate = linear(x, by.gate, "input_gate");
  const TensorId input =
      columns_of(layer_inputs_, "layer_input", layer_ * by.gate.out, by.gate.out);
  const TensorId gated = activation("input_gated", by.gate.out);
  builder_.emit(GeluMul{.tanh = true}, {gate, input}, {gated});
  return linear(gated, by.down, "input_output");
}

}  // namespace snug::models
