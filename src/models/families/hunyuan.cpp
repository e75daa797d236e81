// The hunyuan_v1_dense family (Hunyuan 0.5B to 7B, 2025): llama's network, in which each head of
// queries and keys is normed after it is rotated.
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "models/config/config_keys.h"
#include "models/config/rope.h"
#include "models/families/families.h"
#include "models/families/llama_blocks.h"

namespace snug::models {
namespace {

using base::JsonObject;

Stack stack(const ModelConfig& config) {
  const bool bias = config.attention_bias;
  return decoder(config, [&](int64_t layer) {
    AttentionBlock normed = attention(config, layer, {bias, bias});
    normed.query_norm = rms_norm(config, "self_attn.query_layernorm", config.head_dim);
    normed.key_norm = rms_norm(config, "self_attn.key_layernorm", config.head_dim);
    normed.normed_after_rotation = true;
    return pre_norm_layer(config, std::move(normed), gated_mlp(config));
  });
}

// Published files call their scaling dynamic, and give an alpha. It does not depend on the length
// of the sequence then: theta becomes theta alpha^(d / (d - 2)).
void settle_alpha(const JsonObject& json, ModelConfig& config) {
  const auto rope = rope_object(json);
  if (config.rope.scaling != RopeScaling::dynamic || !rope->has("alpha")) return;
  const double alpha = parse_scale(*rope, "alpha", 1.0);
  if (config.head_dim <= 2) json.fail("head_dim", "is 2, with which alpha has no meaning");
  const auto width = static_cast<double>(config.head_dim);
  config.rope.theta *= std::pow(alpha, width / (width - 2.0));
  config.rope.scaling = RopeScaling::none;
}

ModelConfig parse(const JsonObject& json) {
  ModelConfig config = parse_shape(json, {.norm_epsilon = 1e-5});
  config.rope = parse_rope(json);
  settle_alpha(json, config);
  config.attention_bias = json.boolean_or("attention_bias", false);
  return config;
}

void describe(const ModelConfig& config, nlohmann::json& json) {
  json["attention_bias"] = config.attention_bias;
}

// alpha is 1000.
void published(ModelConfig& config) {
  const auto width = static_cast<double>(config.head_dim);
  config.rope.theta *= std::pow(1000.0, width / (width - 2.0));
}

constexpr std::array kPresets{
    Preset{"hunyuan-7b", 4096, 32, 32, 8, 128, 14336, 128167, 262144, 1e-5F, 1e4, true, published},
};

}  // namespace

const Family kHunyuan{
    "hunyuan_v1_dense", "HunYuanDenseV1ForCausalLM", stack, parse, describe, kPresets, "Hunyuan"};

}  // namespace snug::models
