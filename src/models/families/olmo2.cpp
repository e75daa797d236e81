// The olmo2 family (OLMo 2, 2025): norms follow the blocks instead of preceding them, and queries
// and keys are normed over all heads of a token at once before the rotation.
#include <array>
#include <nlohmann/json.hpp>

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
  normed.query_norm = rms_norm(config, "self_attn.q_norm", normed.heads * normed.head_dim);
  normed.key_norm = rms_norm(config, "self_attn.k_norm", normed.kv_heads * normed.head_dim);
  return post_norm_layer(config, std::move(normed), gated_mlp(config));
}

Stack stack(const ModelConfig& config) {
  return decoder(config, [&](int64_t layer) { return layer_of(config, layer); });
}

ModelConfig parse(const JsonObject& json) {
  ModelConfig config = parse_shape(json, {.norm_epsilon = 1e-5});
  config.rope = parse_rope(json);
  config.attention_bias = json.boolean_or("attention_bias", false);
  return config;
}

void describe(const ModelConfig& config, nlohmann::json& json) {
  json["attention_bias"] = config.attention_bias;
}

constexpr std::array kPresets{
    Preset{"olmo-2-13b", 5120, 40, 40, 40, 128, 13824, 100352, 4096, 1e-6F, 5e5, false},
    Preset{"olmo-2-1b", 2048, 16, 16, 16, 128, 8192, 100352, 4096, 1e-6F, 5e5, false},
    Preset{"olmo-2-32b", 5120, 64, 40, 8, 128, 27648, 100352, 4096, 1e-6F, 5e5, false},
    Preset{"olmo-2-7b", 4096, 32, 32, 32, 128, 11008, 100352, 4096, 1e-6F, 5e5, false},
};

}  // namespace

const Family kOlmo2{"olmo2", "Olmo2ForCausalLM", stack, parse, describe, kPresets, "OLMo 2"};

}  // namespace snug::models
