// The mixtral family (Jiang et al. 2024): mistral's layers with eight experts in place of the mlp,
// two of which process each token.
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

ExpertsBlock experts(const ModelConfig& config) {
  return {.router = {"block_sparse_moe.gate", config.num_experts, config.hidden_size},
          .experts = config.num_experts,
          .chosen = config.chosen_experts,
          .normalize = true,
          .module = "block_sparse_moe.experts",
          .gate = "w1",
          .up = "w3",
          .down = "w2",
          .inner = config.expert_size};
}

Stack stack(const ModelConfig& config) {
  return decoder(config, [&](int64_t layer) {
    return pre_norm_layer(config, attention(config, layer), experts(config));
  });
}

ModelConfig parse(const JsonObject& json) {
  ModelConfig config = parse_shape(
      json, {.kv_heads = 8, .max_position = 131072, .norm_epsilon = 1e-5, .has_experts = true});
  config.rope = parse_rope(json, {.absent_theta = 1e6});
  set_window(config, parse_window(json, 0));
  config.expert_size = config.intermediate_size;
  parse_router(json, {.experts = 8, .chosen = 2}, config);
  if (json.number_or("router_jitter_noise", 0.0) != 0.0)
    json.fail("router_jitter_noise", "is not 0; snug adds no noise to what routers read");
  return config;
}

void describe(const ModelConfig& config, nlohmann::json& json) {
  describe_window(config, json);
  json["num_local_experts"] = config.num_experts;
  json["router_jitter_noise"] = 0.0;
  describe_router(config, json);
}

void eight_experts(ModelConfig& config) {
  config.num_experts = 8;
  config.chosen_experts = 2;
  config.expert_size = config.intermediate_size;
}

constexpr std::array kPresets{
    Preset{"mixtral-8x7b", 4096, 32, 32, 8, 128, 14336, 32000, 32768, 1e-5F, 1e6, false,
           eight_experts},
};

}  // namespace

const Family kMixtral{
    "mixtral",           "MixtralForCausalLM",          stack, parse, describe, kPresets, "Mixtral",
    FamilyForm::mixture, {.peft_targets_experts = true}};

}  // namespace snug::models
