// The qwen3_next family (Qwen3-Next 80B-A3B): the layers of qwen3_5_moe, whose gated delta nets
// have fused projections, and of which some may have one mlp instead of experts.
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "models/config/config_keys.h"
#include "models/config/router_keys.h"
#include "models/families/families.h"
#include "models/families/gated_delta_blocks.h"

namespace snug::models {
namespace {

GatedDeltaBlock fused_delta_net(const ModelConfig& config) {
  GatedDeltaBlock block = gated_delta_net(config);
  block.is_grouped = true;
  block.query_key_value.module = "linear_attn.in_proj_qkvz";
  block.query_key_value.out += block.gate.out;
  block.beta.module = "linear_attn.in_proj_ba";
  block.beta.out += block.decay.out;
  block.gate = {};
  block.decay = {};
  return block;
}

Layer layer_of(const ModelConfig& config, int64_t layer) {
  const bool is_dense = std::ranges::binary_search(config.dense_layers, layer);
  return gated_delta_layer(
      config, layer, fused_delta_net(config),
      is_dense ? Block(gated_mlp(config)) : Block(experts_beside_shared(config)));
}

Stack stack(const ModelConfig& config) {
  return gated_delta_decoder(config, [&](int64_t layer) { return layer_of(config, layer); });
}

ModelConfig parse(const base::JsonObject& json) {
  ModelConfig config = parse_shape(json, {.heads = 16,
                                          .vocab_size = 151936,
                                          .kv_heads = 2,
                                          .head_dim = 256,
                                          .max_position = 32768,
                                          .has_experts = true});
  parse_gated_delta(json, config);
  config.expert_size = positive_or(json, "moe_intermediate_size", 512, kMaxIntermediate);
  config.shared_expert_size =
      positive_or(json, "shared_expert_intermediate_size", 512, kMaxIntermediate);
  config.normalize_experts = json.boolean_or("norm_topk_prob", true);
  parse_router(json, {.experts = 512, .chosen = 10}, config);
  parse_dense_layers(json, config);
  return config;
}

void describe(const ModelConfig& config, nlohmann::json& json) {
  describe_gated_delta(config, json);
  json["moe_intermediate_size"] = config.expert_size;
  json["shared_expert_intermediate_size"] = config.shared_expert_size;
  json["norm_topk_prob"] = config.normalize_experts;
  json["num_experts"] = config.num_experts;
  describe_dense_layers(config, json);
  describe_router(config, json);
}

void experts_of_80b(ModelConfig& config) {
  set_published_states(config, 32);
  config.num_experts = 512;
  config.chosen_experts = 10;
  config.expert_size = 512;
  config.shared_expert_size = 512;
}

// Without the layer that predicts the token after the next one.
constexpr std::array kPresets{
    Preset{"qwen3-next-80b-a3b", 2048, 48, 16, 2, 256, 5120, 151936, 262144, 1e-6F, 1e7, false,
           experts_of_80b},
};

}  // namespace

const Family kQwen3Next{"qwen3_next",
                        "Qwen3NextForCausalLM",
                        stack,
                        parse,
                        describe,
                        kPresets,
                        "Qwen3-Next 80B-A3B",
                        FamilyForm::mixture,
                        {.peft_targets_experts = true}};

}  // namespace snug::models
