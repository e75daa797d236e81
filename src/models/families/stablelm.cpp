// The stablelm family (StableLM 3B-4E1T, StableLM 2): llama's structure and names with layer norms,
// which have biases; a part of each head is rotated. In the 12B model, attention and mlp lie side
// by side on one norm, and each head has layer norms of its own for queries and keys.
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

Norm norm_of_each_head(const ModelConfig& config, const char* module, int64_t heads) {
  return {module, config.head_dim, config.norm_epsilon, NormForm::layer, false, heads};
}

Layer layer_of(const ModelConfig& config, int64_t layer) {
  AttentionBlock block = attention(config, layer, {.query_key_value = config.attention_bias});
  if (config.query_key_norms) {
    block.query_norm = norm_of_each_head(config, "self_attn.q_layernorm.norms", config.num_heads);
    block.key_norm = norm_of_each_head(config, "self_attn.k_layernorm.norms", config.num_kv_heads);
  }
  const Norm first = layer_norm(config, "input_layernorm");
  const Norm second = layer_norm(config, "post_attention_layernorm");
  return {.branches = {{.norm_before = first, .block = std::move(block), .norm_after = {}},
                       {.norm_before = config.parallel_residual ? first : second,
                        .block = gated_mlp(config),
                        .norm_after = {}}},
          .parallel = config.parallel_residual};
}

Stack stack(const ModelConfig& config) {
  Stack stack = decoder(config, [&](int64_t layer) { return layer_of(config, layer); });
  stack.final_norm = layer_norm(config, "model.norm");
  if (config.parallel_residual)
    stack.ignored = {"post_attention_layernorm.weight", "post_attention_layernorm.bias"};
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
  config.query_key_norms = json.boolean_or("qk_layernorm", false);
  config.parallel_residual = json.boolean_or("use_parallel_residual", false);
  return config;
}

void describe(const ModelConfig& config, nlohmann::json& json) {
  json["layer_norm_eps"] = json["rms_norm_eps"];
  json.erase("rms_norm_eps");
  json["partial_rotary_factor"] = config.partial_rotary_factor;
  json["use_qkv_bias"] = config.attention_bias;
  json["qk_layernorm"] = config.query_key_norms;
  json["use_parallel_residual"] = config.parallel_residual;
  json["hidden_dropout"] = 0.0;
}

void quarter_rotary(ModelConfig& config) { config.partial_rotary_factor = 0.25; }

void stablelm_2(ModelConfig& config) {
  quarter_rotary(config);
  config.attention_bias = true;
}

void stablelm_2_12b(ModelConfig& config) {
  quarter_rotary(config);
  config.query_key_norms = config.parallel_residual = true;
}

constexpr std::array kPresets{
    Preset{"stablelm-2-1.6b", 2048, 24, 32, 32, 64, 5632, 100352, 4096, 1e-5F, 1e4, false,
           stablelm_2},
    Preset{"stablelm-2-12b", 5120, 40, 32, 8, 160, 13824, 100352, 4096, 1e-5F, 1e4, false,
           stablelm_2_12b},
    Preset{"stablelm-3b-4e1t", 2560, 32, 32, 32, 80, 6912, 50304, 4096, 1e-5F, 1e4, false,
           quarter_rotary},
};

}  // namespace

const Family kStablelm{"stablelm", "StableLmForCausalLM",         stack, parse, describe,
                       kPresets,   "StableLM 3B-4E1T, StableLM 2"};

}  // namespace snug::models
