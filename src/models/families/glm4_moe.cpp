// The glm4_moe family (GLM-4.5 to 4.7, and their Air models): the first layers have an mlp, the
// others experts that a router of sigmoids chooses, in groups, and a shared one; half of a head is
// rotated.
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "models/config/config_keys.h"
#include "models/config/rope.h"
#include "models/config/router_keys.h"
#include "models/families/families.h"
#include "models/families/llama_blocks.h"

namespace snug::models {
namespace {

using base::JsonObject;

Layer layer_of(const ModelConfig& config, int64_t layer) {
  AttentionBlock normed = attention(config, layer, {.query_key_value = config.attention_bias});
  if (config.query_key_norms) {
    normed.query_norm = rms_norm(config, "self_attn.q_norm", config.head_dim);
    normed.key_norm = rms_norm(config, "self_attn.k_norm", config.head_dim);
  }
  if (std::ranges::binary_search(config.dense_layers, layer))
    return pre_norm_layer(config, std::move(normed), gated_mlp(config));
  ExpertsBlock experts = gated_experts(config);
  experts.score = RouterScore::sigmoid;
  experts.correction = "mlp.gate.e_score_correction_bias";
  experts.groups = config.expert_groups;
  experts.chosen_groups = config.chosen_groups;
  experts.scale = static_cast<float>(config.expert_scale);
  experts.shared = {.mlp = gated_mlp(config, "mlp.shared_experts", config.shared_expert_size)};
  return pre_norm_layer(config, std::move(normed), std::move(experts));
}

Stack stack(const ModelConfig& config) {
  Stack stack = decoder(config, [&](int64_t layer) { return layer_of(config, layer); });
  stack.further_layers = true;
  return stack;
}

void set_first_dense(ModelConfig& config, int64_t count) {
  config.dense_layers.resize(static_cast<size_t>(std::min(count, config.num_layers)));
  std::iota(config.dense_layers.begin(), config.dense_layers.end(), int64_t{0});
}

int64_t count_or(const JsonObject& json, const char* key, int64_t fallback) {
  return json.has(key) && json.integer(key) == 0 ? 0 : positive_or(json, key, fallback, kMaxLayers);
}

ModelConfig parse(const JsonObject& json) {
  ModelConfig config = parse_shape(
      json, {.kv_heads = 8, .max_position = 131072, .norm_epsilon = 1e-5, .has_experts = true});
  config.partial_rotary_factor = parse_partial_rotary(json, config.head_dim, 0.5);
  config.rope = parse_rope(json, {.partial = true});
  config.attention_bias = json.boolean_or("attention_bias", false);
  config.query_key_norms = json.boolean_or("use_qk_norm", false);
  config.expert_size = positive_or(json, "moe_intermediate_size", 1408, kMaxIntermediate);
  config.shared_expert_size =
      config.expert_size * positive_or(json, "n_shared_experts", 1, kMaxExperts);
  config.normalize_experts = json.boolean_or("norm_topk_prob", true);
  config.expert_scale = parse_scale(json, "routed_scaling_factor", 1.0);
  parse_router(json, {.experts = 128, .chosen = 8}, config);
  parse_expert_groups(json, config);
  // transformers has no loss that balances the experts of this family.
  config.router_loss = false;
  set_first_dense(config, count_or(json, "first_k_dense_replace", 1));
  return config;
}

void describe(const ModelConfig& config, nlohmann::json& json) {
  json["partial_rotary_factor"] = config.partial_rotary_factor;
  json["attention_bias"] = config.attention_bias;
  json["use_qk_norm"] = config.query_key_norms;
  json["n_routed_experts"] = config.num_experts;
  json["num_experts_per_tok"] = config.chosen_experts;
  json["moe_intermediate_size"] = config.expert_size;
  json["n_shared_experts"] = config.shared_expert_size / config.expert_size;
  json["norm_topk_prob"] = config.normalize_experts;
  json["routed_scaling_factor"] = config.expert_scale;
  json["n_group"] = config.expert_groups;
  json["topk_group"] = config.chosen_groups;
  json["first_k_dense_replace"] = config.dense_layers.size();
}

void air(ModelConfig& config) {
  config.partial_rotary_factor = 0.5;
  config.attention_bias = true;
  config.num_experts = 128;
  config.chosen_experts = 8;
  config.expert_size = 1408;
  config.shared_expert_size = 1408;
  config.normalize_experts = true;
  set_first_dense(config, 1);
}

constexpr std::array kPresets{
    Preset{"glm-4.5-air", 4096, 46, 96, 8, 128, 10944, 151552, 131072, 1e-5F, 1e6, false, air},
};

}  // namespace

const Family kGlm4Moe{"glm4_moe",
                      "Glm4MoeForCausalLM",
                      stack,
                      parse,
                      describe,
                      kPresets,
                      "GLM-4.5, GLM-4.5-Air",
                      FamilyForm::mixture,
                      {.peft_targets_experts = true}};

}  // namespace snug::models
