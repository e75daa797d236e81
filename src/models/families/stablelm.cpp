// The stablelm family (StableLM 3B-4E1T, StableLM 2 1.6B): llama's structure and names with layer
// norms, which all have biases; a part of each head is rotated.
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
  return {{{.norm_before = layer_norm(config, "input_layernorm"),
            .block = attention(config, layer, {.query_key_value = config.attention_bias}),
            .norm_after = {}},
           {.norm_before = layer_norm(config, "post_attention_layernorm"),
            .block = gated_mlp(config),
            .norm_after = {}}}};
}

Stack stack(const ModelConfig& config) {
  Stack stack = decoder(config, [&](int64_t layer) { return layer_of(config, layer); });
  stack.final_norm = layer_norm(config, "model.norm");
  return stack;
}

ModelConfig parse(const JsonObject& json) {
  ModelConfig config = parse_shape(json, {.kv_heads = 32,
                                          .max_position = 4096,
                                          .norm_epsilon = 1e-5,
                                          .norm_epsilon_key = "layer_norm_eps"});
  config.partial_rotary_factor = parse_partial_rotary(json, config.head_dim, 0.25);
  config.rope = parse_rope(json, {.partial = true});
  config.attention_bias = json.boolean_or("use_qkv_bias", false);
  if (json.boolean_or("qk_layernorm", false))
    json.fail("qk_layernorm",
              "is true: norms of queries and keys with weights of their own for each head "
              "(StableLM 2 12B) are not built");
  if (json.boolean_or("use_parallel_residual", false))
    json.fail("use_parallel_residual",
              "is true: blocks side by side (StableLM 2 12B) are not built for stablelm");
  return config;
}

void describe(const ModelConfig& config, nlohmann::json& json) {
  json["layer_norm_eps"] = json["rms_norm_eps"];
  json.erase("rms_norm_eps");
  json["partial_rotary_factor"] = config.partial_rotary_factor;
  json["use_qkv_bias"] = config.attention_bias;
  json["qk_layernorm"] = json["use_parallel_residual"] = false;
  json["hidden_dropout"] = 0.0;
}

void quarter_rotary(ModelConfig& config) { config.partial_rotary_factor = 0.25; }

void stablelm_2(ModelConfig& config) {
  quarter_rotary(config);
  config.attention_bias = true;
}

constexpr std::array kPresets{
    Preset{"stablelm-2-1.6b", 2048, 24, 32, 32, 64, 5632, 100352, 4096, 1e-5F, 1e4, false,
           stablelm_2},
    Preset{"stablelm-3b-4e1t", 2560, 32, 32, 32, 80, 6912, 50304, 4096, 1e-5F, 1e4, false,
           quarter_rotary},
};

}  // namespace

const Family kStablelm{"stablelm",
                       "StableLmForCausalLM",
                       stack,
                       parse,
                       describe,
                       kPresets,
                       "StableLM 3B-4E1T, StableLM 2 1.6B"};

}  // namespace snug::models
