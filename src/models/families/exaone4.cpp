// The exaone4 family (EXAONE 4.0, 2025): norms follow the blocks, and each head of queries and keys
// is normed. In the model with sliding windows three of four layers have one, and the others see
// everything and are not rotated.
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
  AttentionBlock normed = attention(config, layer);
  normed.query_norm = rms_norm(config, "self_attn.q_norm", config.head_dim);
  normed.key_norm = rms_norm(config, "self_attn.k_norm", config.head_dim);
  return post_norm_layer(config, std::move(normed), gated_mlp(config));
}

Stack stack(const ModelConfig& config) {
  return decoder(config, [&](int64_t layer) { return layer_of(config, layer); });
}

ModelConfig parse(const JsonObject& json) {
  ModelConfig config = parse_shape(json, {.kv_heads = 32, .norm_epsilon = 1e-5});
  config.rope = parse_rope(json);
  const int64_t window = parse_window(json, 4096);
  if (json.has("layer_types"))
    config.windows = parse_layer_types(json, config.num_layers, window);
  else if (window > 0)
    set_window_pattern(config, window, positive_or(json, "sliding_window_pattern", 4));
  if (window > 0) leave_full_layers_unrotated(config);
  return config;
}

void describe(const ModelConfig& config, nlohmann::json& json) {
  describe_window(config, json);
  if (!config.windows.empty()) describe_layer_types(config, json);
}

void llama3_rope(ModelConfig& config) {
  config.rope.scaling = RopeScaling::llama3;
  config.rope.factor = 16.0;
}

void windowed(ModelConfig& config) {
  llama3_rope(config);
  set_window_pattern(config, 4096, 4);
  leave_full_layers_unrotated(config);
}

constexpr std::array kPresets{
    Preset{"exaone-4.0-1.2b", 2048, 30, 32, 8, 64, 4096, 102400, 65536, 1e-5F, 1e6, true,
           llama3_rope},
    Preset{"exaone-4.0-32b", 5120, 64, 40, 8, 128, 27392, 102400, 131072, 1e-5F, 1e6, false,
           windowed},
};

}  // namespace

const Family kExaone4{"exaone4", "Exaone4ForCausalLM", stack, parse, describe,
                      kPresets,  "EXAONE 4.0"};

}  // namespace snug::models
