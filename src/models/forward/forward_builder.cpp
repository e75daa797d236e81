#include "models/forward/forward_builder.h"

#include <fmt/format.h>

#include <unordered_set>
#include <utility>

#include "base/error.h"
#include "models/config/computed_tensors.h"
#include "models/forward/prompt_names.h"
#include "models/weights.h"
#include "program/ir/tensor_names.h"
#include "program/kinds/elementwise/elementwise.h"
#include "program/kinds/norm/layer_norm.h"
#include "program/kinds/norm/rms_norm.h"
#include "program/kinds/product/column_scale.h"
#include "program/kinds/product/matmul.h"

namespace snug::models {

using namespace program;  // NOLINT: this file speaks the program's words throughout

ForwardBuilder::ForwardBuilder(const Stack& stack, const ForwardOptions& options)
    : stack_(stack), options_(options), builder_(options.program) {}

TensorId ForwardBuilder::declare(std::string name, const Shape& shape, DType dtype, Role role,
                                 Lifetime lifetime, int32_t layer) {
  Tensor tensor;
  tensor.name = std::move(name);
  tensor.shape = shape;
  tensor.dtype = dtype;
  tensor.role = role;
  tensor.lifetime = lifetime;
  tensor.layer = layer;
  return builder_.add(std::move(tensor));
}

std::string ForwardBuilder::input_name(std::string_view name) const {
  return options_.own_inputs ? own_name(options_.program, name) : std::string(name);
}

TensorId ForwardBuilder::batch(std::string_view name, const Shape& shape) {
  return batch_named(stream_name(stream_, name), shape);
}

TensorId ForwardBuilder::batch_named(std::string_view name, const Shape& shape) {
  const TensorId id = declare(input_name(name), shape, DType::i32, Role::batch, Lifetime::step);
  builder_.tensor(id).stream = stream_;
  return id;
}

void ForwardBuilder::declare_weights() {
  std::unordered_set<std::string> of_norms;
  if (stack_.adjusts_linears)
    for (std::string& name : norm_weights(stack_)) of_norms.insert(std::move(name));
  for (const Weight& weight : weights_of(stack_))
    declare(weight.name, weight.shape,
            weight.is_constant && options_.compute != DType::f64 ? DType::f32 : options_.compute,
            of_norms.contains(weight.name) ? Role::adapter : Role::weight, Lifetime::run,
            weight.layer);
  for (size_t i = 0; i < builder_.program().tensors.size(); ++i)
    weights_[builder_.program().tensors[i].name] = static_cast<TensorId>(i);
}

TensorId ForwardBuilder::weight(const std::string& of_module) const {
  return weight_named(builder_.layer() < 0
                          ? of_module
                          : fmt::format("{}.{}", stack_.layer_name(layer_), of_module));
}

TensorId ForwardBuilder::weight_named(const std::string& name) const {
  const auto found = weights_.find(name);
  SNUG_CHECK(found != weights_.end(), "no weight {}", name);
  return found->second;
}

TensorId ForwardBuilder::trained(const std::string& name, const Shape& shape, Precision precision) {
  const auto [found, is_new] = weights_.emplace(name, kNone);
  if (!is_new) return found->second;
  const DType wide = options_.compute == DType::f64 ? DType::f64 : DType::f32;
  found->second = declare(name, shape, precision == Precision::wide ? wide : options_.compute,
                          Role::adapter, Lifetime::run, builder_.layer());
  return found->second;
}

ForwardBuilder::Adjustment ForwardBuilder::adjustment(const std::string& of_module, int64_t out) {
  const std::string module =
      builder_.layer() < 0 ? of_module : fmt::format("{}.{}", stack_.layer_name(layer_), of_module);
  return {trained(adjusting_bias_name(module), {out}, Precision::wide),
          trained(adjusting_scale_name(module), {out}, Precision::wide)};
}

std::string ForwardBuilder::local_name(std::string_view name) const {
  return builder_.layer() < 0 ? stream_name(stream_, name)
                              : fmt::format("layers.{}.{}{}", layer_, branch_prefix_, name);
}

TensorId ForwardBuilder::activation(std::string_view name, int64_t width, int64_t rows) {
  return builder_.activation(local_name(name), {rows, width}, options_.compute);
}

TensorId ForwardBuilder::residual_stream(int64_t index) {
  const int32_t current = builder_.layer();
  const bool last = index == (is_encoder() ? stack_.encoder_layers() : layers());
  builder_.set_layer(last ? -1 : static_cast<int32_t>(index));
  const TensorId id = builder_.activation(
      last ? stream_name(stream_, "final.input") : fmt::format("layers.{}.input", index),
      {tokens(), hidden_size()}, options_.compute);
  builder_.set_layer(current);
  return id;
}

TensorId ForwardBuilder::norm(TensorId x, const Norm& by, std::string_view name) {
  const TensorId y = activation(name, columns(x));
  emit_norm(x, by, y);
  return y;
}

TensorId ForwardBuilder::norm_if(const std::optional<Norm>& given, TensorId x,
                                 std::string_view name) {
  return given ? norm(x, *given, name) : x;
}

float ForwardBuilder::in_compute_type(float value) const {
  if (options_.compute == DType::bf16) return base::to_float(base::to_bfloat16(value));
  if (options_.compute == DType::f16) return base::to_float(base::to_float16(value));
  return value;
}

TensorId ForwardBuilder::ones(int64_t width) {
  const auto [found, is_new] = weights_.emplace(ones_name(width), kNone);
  if (is_new)
    found->second =
        declare(found->first, {width}, options_.compute == DType::f64 ? DType::f64 : DType::f32,
                Role::scalar, Lifetime::run);
  return found->second;
}

void ForwardBuilder::emit_norm(TensorId x, const Norm& by, TensorId y) {
  if (by.form == NormForm::rms_without_weight)
    return builder_.emit(RmsNorm{by.epsilon}, {x, ones(by.width)}, {y});
  // What differs from head to head is multiplied afterwards.
  if (by.form == NormForm::layer && by.heads > 0)
    return builder_.emit(LayerNorm{by.epsilon}, {x, ones(by.width)}, {y});
  std::vector<TensorId> reads{x, weight(weight_name(by.module))};
  if (by.form == NormForm::layer) {
    if (by.bias) reads.push_back(weight(bias_name(by.module)));
    return builder_.emit(LayerNorm{by.epsilon, by.bias}, reads, {y});
  }
  const float offset = by.form == NormForm::rms_one_plus_w ? 1.0F : 0.0F;
  builder_.emit(RmsNorm{by.epsilon, offset}, reads, {y});
}

int64_t ForwardBuilder::hidden_size() const {
  return is_encoder() ? stack_.encoder->hidden_size : stack_.hidden_size;
}

TensorId ForwardBuilder::linear(TensorId x, const Linear& by, std::string_view name) {
  const TensorId bias = by.bias ? weight(bias_name(by.module)) : kNone;
  return apply(x, by, {weight(weight_name(by.module)), bias}, name);
}

TensorId ForwardBuilder::linear_named(TensorId x, const Linear& by, std::string_view name) {
  const TensorId bias = by.bias ? weight_named(bias_name(by.module)) : kNone;
  return apply(x, by, {weight_named(weight_name(by.module)), bias}, name);
}

TensorId ForwardBuilder::apply(TensorId x, const Linear& by,
                               std::array<TensorId, 2> weight_and_bias, std::string_view name) {
  const auto [w, bias] = weight_and_bias;
  // The last step that is emitted writes the activation of this name.
  int steps = (by.bias ? 1 : 0) + (stack_.adjusts_linears ? 2 : 0);
  TensorId y = kNone;
  const auto emit = [&](Attributes attributes, std::vector<TensorId> reads, const char* suffix) {
    const std::string step_name = fmt::format("{}{}", name, steps-- == 0 ? "" : suffix);
    y = activation(step_name, by.out, rows(x));
    builder_.emit(attributes, std::move(reads), {y});
  };
  emit(Matmul{.transpose_b = !by.transposed}, {x, w}, ".product");
  if (by.bias) emit(AddBias{}, {y, bias}, ".biased");
  if (!stack_.adjusts_linears) return y;
  const Adjustment adjusting = adjustment(by.module, by.out);
  emit(AddBias{}, {y, adjusting.bias}, ".moved");
  emit(ScaleColumns{}, {y, adjusting.scale}, "");
  return y;
}

std::vector<TensorId> ForwardBuilder::project(TensorId x, const Projections& projections,
                                              const std::vector<const char*>& names) {
  std::vector<TensorId> results;
  for (size_t i = 0; i < names.size(); ++i)
    results.push_back(linear(x, projections.parts[i], names[i]));
  return results;
}

std::vector<TensorId> ForwardBuilder::split(TensorId all, const Projections& projections,
                                            const std::vector<const char*>& names) {
  std::vector<TensorId> results;
  int64_t offset = 0;
  for (size_t i = 0; i < names.size(); ++i) {
    results.push_back(columns_of(all, names[i], offset, projections.parts[i].out));
    offset += projections.parts[i].out;
  }
  return results;
}

TensorId ForwardBuilder::part_of_groups(TensorId all, std::string_view name,
                                        const GroupPart& part) {
  return view(all, name, {rows(all) * part.groups, part.width},
              {.offset = part.offset, .strides = {columns(all) / part.groups, 1}});
}

TensorId ForwardBuilder::copy_of_groups(TensorId part, std::string_view name, int64_t groups) {
  const TensorId copy = activation(fmt::format("{}.groups", name), columns(part), rows(part));
  builder_.emit(Scale{.factor = 1.0F}, {part}, {copy});
  return reshaped(copy, name, {rows(part) / groups, groups * columns(part)});
}

std::vector<ForwardBuilder::NamedPart> ForwardBuilder::parts_of_heads(const AttentionBlock& by) {
  const Projections& projections = by.query_key_value;
  const bool in_blocks = projections.order == RowOrder::by_block;
  const int64_t groups = in_blocks ? projections.blocks : by.kv_heads;
  const int64_t queries = projections.queries_apart ? 0 : by.heads / groups * by.head_dim;
  const int64_t keys = by.kv_heads / groups * by.head_dim;
  const int64_t first = queries;
  const int64_t second = queries + keys;
  std::vector<NamedPart> parts{{"k", {groups, in_blocks ? second : first, keys}},
                               {"v", {groups, in_blocks ? first : second, keys}}};
  if (queries > 0) parts.insert(parts.begin(), NamedPart{"q", {groups, 0, queries}});
  return parts;
}

std::vector<TensorId> ForwardBuilder::copy_heads(TensorId all, const AttentionBlock& by) {
  std::vector<TensorId> results;
  for (const auto& [name, part] : parts_of_heads(by)) {
    const TensorId rows = part_of_groups(all, fmt::format("{}.in_groups", name), part);
    results.push_back(copy_of_groups(rows, name, part.groups));
  }
  return results;
}

TensorId ForwardBuilder::view(TensorId base, std::string_view name, const Shape& shape,
                              const View& of) {
  Tensor tensor = builder_.program().tensor(base);
  tensor.name = local_name(name);
  tensor.shape = shape;
  tensor.view = of;
  tensor.view.base = base;
  return builder_.add(std::move(tensor));
}

TensorId ForwardBuilder::columns_of(TensorId base, std::string_view name, int64_t offset,
                                    int64_t width) {
  return view(base, name, {rows(base), width}, {.offset = offset, .strides = {columns(base), 1}});
}

TensorId ForwardBuilder::reshaped(TensorId base, std::string_view name, const Shape& shape) {
  return view(base, name, shape, {.strides = dense_strides(shape)});
}

}  // namespace snug::models
