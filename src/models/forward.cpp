#include "models/forward.h"

#include <fmt/format.h>

#include <cmath>

#include "base/error.h"
#include "models/rope.h"
#include "models/weights.h"
#include "program/builder.h"
#include "program/tensor_names.h"

namespace snug::models {
namespace {

using namespace program;  // NOLINT: this file speaks the program's words throughout

class Forward {
 public:
  Forward(const ModelConfig& config, const ForwardOptions& options)
      : config_(config), options_(options), builder_(options.program) {}

  Program build() {
    declare_inputs();
    declare_weights();
    TensorId hidden = embed();
    for (int64_t layer = 0; layer < config_.num_layers; ++layer) {
      layer_ = layer;
      builder_.set_layer(static_cast<int32_t>(layer));
      hidden = add_mlp(add_attention(hidden));
    }
    builder_.set_layer(-1);
    head(norm(hidden, kFinalNormWeight, "final.norm"));
    return builder_.take();
  }

 private:
  TensorId declare(std::string name, const Shape& shape, DType dtype, Role role, Lifetime lifetime,
                   int32_t layer = -1) {
    Tensor tensor;
    tensor.name = std::move(name);
    tensor.shape = shape;
    tensor.dtype = dtype;
    tensor.role = role;
    tensor.lifetime = lifetime;
    tensor.layer = layer;
    return builder_.add(std::move(tensor));
  }

  std::string input_name(std::string_view name) const {
    return options_.own_inputs ? own_name(options_.program, name) : std::string(name);
  }

  TensorId batch(std::string_view name, const Shape& shape) {
    return declare(input_name(name), shape, DType::i32, Role::batch, Lifetime::step);
  }

  void declare_inputs() {
    tokens_ = batch(kTokensName, {options_.tokens});
    positions_ = batch(kPositionsName, {options_.tokens});
    query_bounds_ = batch(kQueryBoundsName, {options_.segments, 2});
    key_bounds_ = query_bounds_;
    if (options_.cache_capacity > 0) {
      key_bounds_ = batch(kKeyBoundsName, {options_.segments, 2});
      slots_ = batch(kSlotsName, {options_.tokens});
    }
    frequencies_ = declare(frequencies_name(config_, options_.sequence_tokens),
                           {config_.head_dim / 2}, DType::f32, Role::scalar, Lifetime::run);
  }

  void declare_weights() {
    for (const Weight& weight : weights_of(config_))
      declare(weight.name, weight.shape, options_.compute, Role::weight, Lifetime::run,
              weight.layer);
    for (size_t i = 0; i < builder_.program().tensors.size(); ++i)
      weights_[builder_.program().tensors[i].name] = static_cast<TensorId>(i);
  }

  TensorId weight(const std::string& name) const {
    const auto found = weights_.find(name);
    SNUG_CHECK(found != weights_.end(), "no weight {}", name);
    return found->second;
  }

  int64_t columns(TensorId id) const { return builder_.program().tensor(id).shape.columns(); }

  TensorId activation(const char* name, int64_t width) {
    const std::string full =
        builder_.layer() < 0 ? std::string(name) : fmt::format("layers.{}.{}", layer_, name);
    return builder_.activation(full, {options_.tokens, width}, options_.compute);
  }

  // The residual stream entering layer `index`; it belongs to the layer that reads it.
  TensorId residual_stream(int64_t index) {
    const int32_t current = builder_.layer();
    const bool last = index == config_.num_layers;
    builder_.set_layer(last ? -1 : static_cast<int32_t>(index));
    const TensorId id =
        builder_.activation(last ? "final.input" : fmt::format("layers.{}.input", index),
                            {options_.tokens, config_.hidden_size}, options_.compute);
    builder_.set_layer(current);
    return id;
  }

  TensorId embed() {
    rotary_ = builder_.activation("rotary_table", {options_.tokens, config_.head_dim}, DType::f32);
    const auto factor = static_cast<float>(config_.rope.attention_factor);
    builder_.emit(RotaryTable{.factor = factor}, {positions_, frequencies_}, {rotary_});
    const TensorId hidden = residual_stream(0);
    builder_.emit(Embedding{}, {weight(kEmbeddingWeight), tokens_}, {hidden});
    return hidden;
  }

  TensorId norm(TensorId x, const std::string& weight_name, const char* name) {
    const TensorId y = activation(name, columns(x));
    builder_.emit(RmsNorm{config_.norm_epsilon}, {x, weight(weight_name)}, {y});
    return y;
  }

  // y = x W^T (+ bias), x (tokens, in), W (out, in) -> y (tokens, out)
  TensorId linear(TensorId x, const char* module, const char* name, bool bias) {
    const TensorId w = weight(layer_weight(layer_, module));
    const int64_t out = builder_.program().tensor(w).shape[0];
    const std::string product = bias ? fmt::format("{}.product", name) : std::string(name);
    TensorId y = activation(product.c_str(), out);
    builder_.emit(Matmul{.transpose_b = true}, {x, w}, {y});
    if (!bias) return y;
    const TensorId sum = activation(name, out);
    builder_.emit(AddBias{}, {y, weight(layer_bias(layer_, module))}, {sum});
    return sum;
  }

  // `turned_heads` 0: all that x has.
  TensorId rope(TensorId x, const char* name, int64_t turned_heads = 0) {
    const TensorId y = activation(name, columns(x));
    builder_.emit(Rope{.head_dim = config_.head_dim, .turned_heads = turned_heads}, {x, rotary_},
                  {y});
    return y;
  }

  TensorId view(TensorId base, const char* name, const Shape& shape, const View& of) {
    Tensor tensor = builder_.program().tensor(base);
    tensor.name = fmt::format("layers.{}.{}", layer_, name);
    tensor.shape = shape;
    tensor.view = of;
    tensor.view.base = base;
    return builder_.add(std::move(tensor));
  }

  // Columns [offset, offset + width) of a (tokens, columns) activation.
  TensorId columns_of(TensorId base, const char* name, int64_t offset, int64_t width) {
    return view(base, name, {options_.tokens, width},
                {.offset = offset, .strides = {columns(base), 1}});
  }

  // The same elements in another shape.
  TensorId reshaped(TensorId base, const char* name, const Shape& shape) {
    return view(base, name, shape, {.strides = dense_strides(shape)});
  }

  // x (tokens, heads * head_dim), each head normed by itself where the family does so.
  TensorId head_norm(TensorId x, const char* which, const char* module) {
    if (!config_.qk_norm) return x;
    const int64_t width = columns(x);
    const Shape heads{options_.tokens * width / config_.head_dim, config_.head_dim};
    const std::string name = fmt::format("{}_norm", which);
    const TensorId y =
        builder_.activation(fmt::format("layers.{}.{}", layer_, name), heads, options_.compute);
    const TensorId w = weight(layer_weight(layer_, module));
    builder_.emit(RmsNorm{config_.norm_epsilon},
                  {reshaped(x, fmt::format("{}.heads", which).c_str(), heads), w}, {y});
    return reshaped(y, fmt::format("{}.rows", name).c_str(), {options_.tokens, width});
  }

  // Queries and keys, rotated, and values: (tokens, heads * head_dim) each.
  struct Heads {
    TensorId q, k, v;
  };

  Heads project(TensorId x) {
    // What reads the same stands side by side, so that a target may do it together.
    const bool bias = config_.qkv_bias;
    TensorId q = linear(x, modules::kQuery, "q", bias);
    TensorId k = linear(x, modules::kKey, "k", bias);
    const TensorId v = linear(x, modules::kValue, "v", bias);
    q = head_norm(q, "q", modules::kQueryNorm);
    k = head_norm(k, "k", modules::kKeyNorm);
    q = rope(q, "q_rope");
    return {q, rope(k, "k_rope"), v};
  }

  Heads project_fused(TensorId x) {
    const int64_t heads = config_.num_heads, kv_heads = config_.num_kv_heads;
    const int64_t q = heads * config_.head_dim, kv = kv_heads * config_.head_dim;
    const TensorId all = rope(linear(x, modules::kQueryKeyValue, "qkv", config_.qkv_bias),
                              "qkv_rope", heads + kv_heads);
    return {columns_of(all, "q", 0, q), columns_of(all, "k", q, kv),
            columns_of(all, "v", q + kv, kv)};
  }

  // Appends new rows to the layer's cache and returns it; the rows themselves without a cache.
  TensorId cached(TensorId rows, const char* name) {
    if (options_.cache_capacity == 0) return rows;
    const TensorId cache =
        declare(fmt::format("layers.{}.{}", layer_, name), {options_.cache_capacity, columns(rows)},
                options_.compute, Role::kv_cache, Lifetime::run, builder_.layer());
    builder_.emit(CacheWrite{}, {rows, slots_}, {}, {cache});
    return cache;
  }

  TensorId add_attention(TensorId x) {
    const TensorId n = norm(x, layer_weight(layer_, modules::kAttentionNorm), "attention_norm");
    const auto [q, k, v] = config_.fused_projections ? project_fused(n) : project(n);
    const TensorId o = activation("attention", columns(q));
    const TensorId lse = builder_.activation(fmt::format("layers.{}.lse", layer_),
                                             {config_.num_heads, options_.tokens}, DType::f32);
    const auto scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(config_.head_dim)));
    builder_.emit(Attention{.heads = config_.num_heads,
                            .kv_heads = config_.num_kv_heads,
                            .head_dim = config_.head_dim,
                            .scale = scale,
                            .window = config_.window_of(layer_),
                            .segment_tokens = options_.segment_tokens,
                            .no_empty_segments = options_.no_empty_segments,
                            .deterministic = options_.deterministic},
                  {q, cached(k, "key_cache"), cached(v, "value_cache"), query_bounds_, key_bounds_},
                  {o, lse});
    const TensorId projected =
        linear(o, modules::kAttentionOutput, "attention_output", config_.output_bias);
    const TensorId middle = activation("middle", config_.hidden_size);
    builder_.emit(Add{}, {x, projected}, {middle});
    return middle;
  }

  std::pair<TensorId, TensorId> gate_and_up(TensorId x) {
    const bool bias = config_.mlp_bias;
    const int64_t width = config_.intermediate_size;
    if (config_.fused_projections) {
      const TensorId both = linear(x, modules::kGateUp, "gate_up", bias);
      return {columns_of(both, "gate", 0, width), columns_of(both, "up", width, width)};
    }
    const TensorId gate = linear(x, modules::kGate, "gate", bias);
    return {gate, linear(x, modules::kUp, "up", bias)};
  }

  TensorId add_mlp(TensorId middle) {
    const TensorId n = norm(middle, layer_weight(layer_, modules::kMlpNorm), "mlp_norm");
    const auto [gate, up] = gate_and_up(n);
    const TensorId gated = activation("gated", config_.intermediate_size);
    builder_.emit(SiluMul{}, {gate, up}, {gated});
    const TensorId down = linear(gated, modules::kDown, "mlp_output", config_.mlp_bias);
    const TensorId output = residual_stream(layer_ + 1);
    builder_.emit(Add{}, {middle, down}, {output});
    return output;
  }

  void head(TensorId hidden) {
    const TensorId w = weight(head_name(config_));
    if (options_.head == Head::logits) return head_logits(hidden, w);
    const TensorId targets = batch(kTargetsName, {options_.tokens});
    const TensorId inverse =
        declare(std::string(kInverseTokensName), {1}, DType::f32, Role::batch, Lifetime::step);
    const TensorId losses =
        declare("losses", {options_.tokens}, DType::f32, Role::scalar, Lifetime::step);
    const TensorId loss =
        declare(std::string(kLossName), {1}, DType::f32, Role::scalar, Lifetime::step);
    builder_.emit(LinearCrossEntropy{}, {hidden, w, targets, inverse}, {losses, loss});
  }

  void head_logits(TensorId hidden, TensorId w) {
    const TensorId rows = batch(kOutputRowsName, {options_.outputs});
    const TensorId selected = builder_.activation(
        "final.selected", {options_.outputs, config_.hidden_size}, options_.compute);
    builder_.emit(Embedding{}, {hidden, rows}, {selected});
    const TensorId logits = declare(input_name(kLogitsName), {options_.outputs, config_.vocab_size},
                                    DType::f32, Role::logits, Lifetime::step);
    builder_.emit(Matmul{.transpose_b = true}, {selected, w}, {logits});
    if (options_.candidates == 0) return;
    const auto found = [&](std::string_view name, DType dtype) {
      return declare(input_name(name), {options_.outputs, options_.candidates}, dtype, Role::scalar,
                     Lifetime::step);
    };
    builder_.emit(TopK{options_.candidates}, {logits},
                  {found(kLikeliestLogitsName, DType::f32), found(kLikeliestIdsName, DType::i32)});
  }

  const ModelConfig& config_;
  const ForwardOptions& options_;
  Builder builder_;
  std::unordered_map<std::string, TensorId> weights_;
  int64_t layer_ = 0;
  TensorId tokens_ = kNone, positions_ = kNone, query_bounds_ = kNone, key_bounds_ = kNone;
  TensorId slots_ = kNone, frequencies_ = kNone, rotary_ = kNone;
};

}  // namespace

Program forward(const ModelConfig& config, const ForwardOptions& options) {
  return Forward(config, options).build();
}

}  // namespace snug::models
