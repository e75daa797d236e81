// The glm4 family (GLM-4-0414): norms before and after each block; neighbouring elements of the
// first half of a head are rotated together; one tensor holds gate and up.
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
  GatedMlp mlp = gated_mlp(config);
  mlp.gate_up.fused = "mlp.gate_up_proj";
  return {{{.norm_before = rms_norm(config, "input_layernorm"),
            .block = attention(config, layer, {.query_key_value = config.attention_bias}),
            .norm_after = rms_norm(config, "post_self_attn_layernorm")},
           {.norm_before = rms_norm(config, "post_attention_layernorm"),
            .block = std::move(mlp),
            .norm_after = rms_norm(config, "post_mlp_layernorm")}}};
}

Stack stack(const ModelConfig& config) {
  Stack stack = decoder(config, [&](int64_t layer) { return layer_of(config, layer); });
  stack.rotary.interleaved = true;
  return stack;
}

ModelConfig parse(const JsonObject& json) {
  ModelConfig config = parse_shape(
      json,
      {.kv_heads = 2, .head_dim = 128, .max_position = 131072, .norm_epsilon = 0.00000015625});
  config.partial_rotary_factor = parse_partial_rotary(json, config.head_dim, 0.5);
  config.rope = parse_rope(json, {.partial = true});
  config.attention_bias = json.boolean_or("attention_bias", true);
  return config;
}

void describe(const ModelConfig& config, nlohmann::json& json) {
  json["partial_rotary_factor"] = config.partial_rotary_factor;
  json["attention_bias"] = config.attention_bias;
}

void half_rotary(ModelConfig& config) { config.partial_rotary_factor = 0.5; }

void biased(ModelConfig& config) {
  half_rotary(config);
  config.attention_bias = true;
}

constexpr std::array kPresets{
    Preset{"glm-4-32b-0414", 6144, 61, 48, 2, 128, 23040, 151552, 32768, 1e-5F, 1e4, false,
           half_rotary},
    Preset{"glm-4-9b-0414", 4096, 40, 32, 2, 128, 13696, 151552, 32768, 1e-5F, 1e4, false, biased},
};

}  // namespace

const Family kGlm4{"glm4", "Glm4ForCausalLM", stack, parse, describe, kPresets, "GLM-4"};

}  // namespace snug::models
