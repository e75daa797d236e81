// The apertus family (Apertus 8B and 70B, 2025): llama's attention with norms of heads, and an mlp
// without a gate whose activation, xielu, has two learned numbers in each layer.
#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "models/config/config_keys.h"
#include "models/config/rope.h"
#include "models/families/families.h"
#include "models/families/llama_blocks.h"

namespace snug::models {
namespace {

using base::JsonObject;

Layer layer_of(const ModelConfig& config, int64_t layer) {
  const bool bias = config.attention_bias;
  AttentionBlock normed = attention(config, layer, {bias, bias});
  normed.query_norm = rms_norm(config, "self_attn.q_norm", config.head_dim);
  normed.key_norm = rms_norm(config, "self_attn.k_norm", config.head_dim);
  Mlp mlp =
      plain_mlp(config, {.up = "mlp.up_proj", .down = "mlp.down_proj"}, Activation::xielu, false);
  mlp.learned = "mlp.act_fn";
  return {{{rms_norm(config, "attention_layernorm"), std::move(normed), {}},
           {rms_norm(config, "feedforward_layernorm"), std::move(mlp), {}}}};
}

Stack stack(const ModelConfig& config) {
  return decoder(config, [&](int64_t layer) { return layer_of(config, layer); });
}

// transformers' class has this scaling where a file gives none.
RopeConfig default_rope() {
  RopeConfig rope;
  rope.theta = 12e6;
  rope.scaling = RopeScaling::llama3;
  rope.factor = 8.0;
  rope.low_freq_factor = 1.0;
  rope.high_freq_factor = 4.0;
  rope.original_max_position = 8192;
  return rope;
}

ModelConfig parse(const JsonObject& json) {
  ModelConfig config =
      parse_shape(json, {.max_position = 65536, .norm_epsilon = 1e-5, .activations = {"xielu"}});
  config.rope = rope_object(json) ? parse_rope(json) : default_rope();
  config.attention_bias = json.boolean_or("attention_bias", false);
  // transformers' class reads none of these: it is the network that published files describe.
  for (const auto& [key, published] :
       {std::pair{"post_norm", false}, std::pair{"mlp_bias", false}, std::pair{"qk_norm", true}})
    if (json.boolean_or(key, published) != published)
      json.fail(key, fmt::format("is {}; apertus has it only as {}", !published, published));
  return config;
}

void describe(const ModelConfig& config, nlohmann::json& json) {
  json["hidden_act"] = "xielu";
  json["attention_bias"] = config.attention_bias;
  // Without rope_parameters the frequencies would be scaled.
  if (config.rope.scaling == RopeScaling::none)
    json["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", config.rope.theta}};
}

void published(ModelConfig& config) { config.rope = default_rope(); }

constexpr std::array kPresets{
    Preset{"apertus-8b", 4096, 32, 32, 8, 128, 21504, 131072, 65536, 1e-5F, 12e6, false, published},
    Preset{"apertus-70b", 8192, 80, 64, 8, 128, 43008, 131072, 65536, 1e-5F, 12e6, false,
           published},
};

}  // namespace

const Family kApertus{"apertus", "ApertusForCausalLM", stack, parse, describe, kPresets, "Apertus"};

}  // namespace snug::models
