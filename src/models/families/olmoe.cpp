// The olmoe family (OLMoE, Muennighoff et al. 2024): llama's layers with many small experts in
// place of the mlp; queries and keys are normed over all heads of a token at once.
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "models/config/config_keys.h"
#include "models/config/rope.h"
#include "models/config/router_keys.h"
#include "models/families/families.h"
#include "models/families/llama_blocks.h"

namespace snug::models {
namespace {

using base::JsonObject;

constexpr double kCoefficient = 0.01;

Layer layer_of(const ModelConfig& config, int64_t layer) {
  const bool bias = config.attention_bias;
  AttentionBlock normed = attention(config, layer, {bias, bias});
  normed.query_norm = rms_norm(config, "self_attn.q_norm", normed.heads * normed.head_dim);
  normed.key_norm = rms_norm(config, "self_attn.k_norm", normed.kv_heads * normed.head_dim);
  return pre_norm_layer(config, std::move(normed), gated_experts(config));
}

Stack stack(const ModelConfig& config) {
  return decoder(config, [&](int64_t layer) { return layer_of(config, layer); });
}

ModelConfig parse(const JsonObject& json) {
  ModelConfig config =
      parse_shape(json, {.max_position = 4096, .norm_epsilon = 1e-5, .has_experts = true});
  config.rope = parse_rope(json);
  config.attention_bias = json.boolean_or("attention_bias", false);
  if (json.has("clip_qkv"))
    json.fail("clip_qkv", "is set; snug does not clip queries, keys and values");
  config.expert_size = config.intermediate_size;
  config.normalize_experts = json.boolean_or("norm_topk_prob", false);
  parse_router(json, {.experts = 64, .chosen = 8, .coefficient = kCoefficient}, config);
  return config;
}

void describe(const ModelConfig& config, nlohmann::json& json) {
  json["attention_bias"] = config.attention_bias;
  json["num_experts"] = config.num_experts;
  json["norm_topk_prob"] = config.normalize_experts;
  describe_router(config, json);
}

void sixty_four_experts(ModelConfig& config) {
  config.num_experts = 64;
  config.chosen_experts = 8;
  config.expert_size = config.intermediate_size;
  config.normalize_experts = false;
  config.router_coefficient = kCoefficient;
}

constexpr std::array kPresets{
    Preset{"olmoe-1b-7b", 2048, 16, 16, 16, 128, 1024, 50304, 4096, 1e-5F, 1e4, false,
           sixty_four_experts},
};

}  // namespace

const Family kOlmoe{"olmoe",
                    "OlmoeForCausalLM",
                    stack,
                    parse,
                    describe,
                    kPresets,
                    "OLMoE",
                    FamilyForm::mixture,
                    {.peft_targets_experts = true}};

}  // namespace snug::models
