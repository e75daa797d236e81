// The qwen3 family, its dense models: each query and key head is normed before the rotation, and
// head_dim is independent of hidden_size.
#include <array>
#include <nlohmann/json.hpp>

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
    normed.query_norm = rms_norm(config, "self_attn.q_norm", config.head_dim);
    normed.key_norm = rms_norm(config, "self_attn.k_norm", config.head_dim);
    return pre_norm_layer(config, std::move(normed), gated_mlp(config));
  });
}

ModelConfig parse(const JsonObject& json) {
  ModelConfig config = parse_shape(json, {.kv_heads = 32, .head_dim = 128, .max_position = 32768});
  config.rope = parse_rope(json);
  config.attention_bias = json.boolean_or("attention_bias", false);
  config.windows = parse_layer_windows(json, config.num_layers);
  return config;
}

void describe(const ModelConfig& config, nlohmann::json& json) {
  json["attention_bias"] = config.attention_bias;
  describe_layer_windows(config, json);
}

constexpr std::array kPresets{
    Preset{"qwen3-0.6b", 1024, 28, 16, 8, 128, 3072, 151936, 40960, 1e-6F, 1e6, true},
    Preset{"qwen3-1.7b", 2048, 28, 16, 8, 128, 6144, 151936, 40960, 1e-6F, 1e6, true},
    Preset{"qwen3-14b", 5120, 40, 40, 8, 128, 17408, 151936, 40960, 1e-6F, 1e6, false},
    Preset{"qwen3-32b", 5120, 64, 64, 8, 128, 25600, 151936, 40960, 1e-6F, 1e6, false},
    Preset{"qwen3-4b", 2560, 36, 32, 8, 128, 9728, 151936, 40960, 1e-6F, 1e6, true},
    Preset{"qwen3-8b", 4096, 36, 32, 8, 128, 12288, 151936, 40960, 1e-6F, 1e6, false},
};

}  // namespace

const Family kQwen3{"qwen3", "Qwen3ForCausalLM", stack, parse, describe, kPresets, "Qwen3"};

}  // namespace snug::models
