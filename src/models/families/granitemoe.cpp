// The granitemoe family (Granite 3.0 and 3.1, A400M and A800M): granite's layers with experts,
// whose matrices files hold together, in place of the mlp.
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
  return {.router = {"block_sparse_moe.router.layer", config.num_experts, config.hidden_size},
          .experts = config.num_experts,
          .chosen = config.chosen_experts,
          .normalize = true,
          .module = "block_sparse_moe",
          .gate = "input_linear.weight",
          .up = "",
          .down = "output_linear.weight",
          .inner = config.expert_size,
          .files = ExpertFiles::stacked};
}

Stack stack(const ModelConfig& config) {
  const bool bias = config.attention_bias;
  return decoder(config, [&](int64_t layer) {
    return pre_norm_layer(config, attention(config, layer, {bias, bias}), experts(config));
  });
}

ModelConfig parse(const JsonObject& json) {
  ModelConfig config =
      parse_shape(json, {.dropout_keys = {"attention_dropout"}, .has_experts = true});
  config.rope = parse_rope(json);
  config.attention_bias = json.boolean_or("attention_bias", false);
  parse_granite_scales(json, config);
  config.expert_size = config.intermediate_size;
  parse_router(json, {.experts = 8, .chosen = 2}, config);
  return config;
}

void describe(const ModelConfig& config, nlohmann::json& json) {
  json["attention_bias"] = config.attention_bias;
  describe_granite_scales(config, json);
  json["num_local_experts"] = config.num_experts;
  describe_router(config, json);
}

template <int64_t kExperts>
void small_experts(ModelConfig& config) {
  config.embedding_scale = 12.0;
  config.residual_scale = 0.22;
  config.attention_scale = 1.0 / static_cast<double>(config.head_dim);
  config.logit_scale = 1.0 / 6.0;
  config.num_experts = kExperts;
  config.chosen_experts = 8;
  config.expert_size = config.intermediate_size;
}

constexpr std::array kPresets{
    Preset{"granite-3.1-1b-a400m", 1024, 24, 16, 8, 64, 512, 49155, 131072, 1e-6F, 1.5e6, true,
           small_experts<32>},
    Preset{"granite-3.1-3b-a800m", 1536, 32, 24, 8, 64, 512, 49155, 131072, 1e-6F, 1.5e6, true,
           small_experts<40>},
};

}  // namespace

const Family kGraniteMoe{"granitemoe",
                         "GraniteMoeForCausalLM",
                         stack,
                         parse,
                         describe,
                         kPresets,
                         "Granite 3 A400M and A800M",
                         FamilyForm::mixture};

}  // namespace snug::models
