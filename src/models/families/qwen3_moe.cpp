// The qwen3_moe family: qwen3's layers with many small experts in place of the mlp, except in the
// dense layers, which keep an mlp.
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "models/config/config_keys.h"
#include "models/config/rope.h"
#include "models/config/router_keys.h"
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
  if (std::ranges::binary_search(config.dense_layers, layer))
    return pre_norm_layer(config, std::move(normed), gated_mlp(config));
  return pre_norm_layer(config, std::move(normed), gated_experts(config));
}

Stack stack(const ModelConfig& config) {
  return decoder(config, [&](int64_t layer) { return layer_of(config, layer); });
}

ModelConfig parse(const JsonObject& json) {
  ModelConfig config = parse_shape(
      json, {.kv_heads = 4, .head_dim = 128, .max_position = 32768, .has_experts = true});
  config.rope = parse_rope(json);
  config.attention_bias = json.boolean_or("attention_bias", false);
  set_window(config, json.boolean_or("use_sliding_window", false) ? parse_window(json, 4096) : 0);
  config.expert_size = positive_or(json, "moe_intermediate_size", 768, kMaxIntermediate);
  config.normalize_experts = json.boolean_or("norm_topk_prob", false);
  parse_router(json, {.experts = 128, .chosen = 8}, config);
  parse_dense_layers(json, config);
  return config;
}

void describe(const ModelConfig& config, nlohmann::json& json) {
  json["attention_bias"] = config.attention_bias;
  describe_window(config, json);
  json["use_sliding_window"] = !json["sliding_window"].is_null();
  json["num_experts"] = config.num_experts;
  json["moe_intermediate_size"] = config.expert_size;
  json["norm_topk_prob"] = config.normalize_experts;
  describe_dense_layers(config, json);
  describe_router(config, json);
}

void many_experts(ModelConfig& config) {
  config.num_experts = 128;
  config.chosen_experts = 8;
  config.expert_size = 768;
  config.normalize_experts = true;
}

constexpr std::array kPresets{
    Preset{"qwen3-30b-a3b", 2048, 48, 32, 4, 128, 6144, 151936, 40960, 1e-6F, 1e6, false,
           many_experts},
};

}  // namespace

const Family kQwen3Moe{"qwen3_moe",
                       "Qwen3MoeForCausalLM",
                       stack,
                       parse,
                       describe,
                       kPresets,
                       "Qwen3 30B-A3B and 235B-A22B",
                       FamilyForm::mixture,
                       {.peft_targets_experts = true}};

}  // namespace snug::models
