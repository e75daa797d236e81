// The qwen3_5_moe_text family (the text part of Qwen3.5 and Qwen3.6 35B-A3B and larger mixtures):
// the layers of qwen3_5 with many small experts and a shared one in place of the mlp. Published
// folders hold a layer's experts in one tensor; transformers 5 writes a tensor for each.
#include <array>
#include <nlohmann/json.hpp>

#include "models/config/config_keys.h"
#include "models/config/router_keys.h"
#include "models/families/families.h"
#include "models/families/gated_delta_blocks.h"

namespace snug::models {
namespace {

Stack stack(const ModelConfig& config) {
  return gated_delta_decoder(config, [&](int64_t layer) {
    return gated_delta_layer(config, layer, gated_delta_net(config), experts_beside_shared(config));
  });
}

ModelConfig parse(const base::JsonObject& json) {
  ModelConfig config = parse_shape(json, {.keys = {.intermediate = "moe_intermediate_size"},
                                          .heads = 16,
                                          .vocab_size = 248320,
                                          .kv_heads = 2,
                                          .head_dim = 256,
                                          .max_position = 32768,
                                          .has_experts = true});
  parse_gated_delta(json, config);
  config.expert_size = config.intermediate_size;
  config.shared_expert_size =
      positive_or(json, "shared_expert_intermediate_size", 512, kMaxIntermediate);
  config.experts_in_one = true;
  parse_router(json, {.experts = 256, .chosen = 8}, config);
  return config;
}

void describe(const ModelConfig& config, nlohmann::json& json) {
  describe_gated_delta(config, json);
  rename_key(json, "intermediate_size", "moe_intermediate_size");
  json["shared_expert_intermediate_size"] = config.shared_expert_size;
  json["num_experts"] = config.num_experts;
  describe_router(config, json);
}

void experts_of_35b(ModelConfig& config) {
  set_published_states(config, 32);
  config.num_experts = 256;
  config.chosen_experts = 8;
  config.expert_size = config.intermediate_size;
  config.shared_expert_size = 512;
  config.experts_in_one = true;
}

// The text part alone, as in qwen3_5.cpp.
constexpr std::array kPresets{
    Preset{"qwen3.5-35b-a3b", 2048, 40, 16, 2, 256, 512, 248320, 262144, 1e-6F, 1e7, false,
           experts_of_35b},
    Preset{"qwen3.6-35b-a3b", 2048, 40, 16, 2, 256, 512, 248320, 262144, 1e-6F, 1e7, false,
           experts_of_35b},
};

}  // namespace

const Family kQwen35Moe{"qwen3_5_moe_text",
                        "Qwen3_5MoeForCausalLM",
                        stack,
                        parse,
                        describe,
                        kPresets,
                        "Qwen3.5 and Qwen3.6 35B-A3B",
                        FamilyForm::mixture};

}  // namespace snug::models
