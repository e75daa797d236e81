// The qwen2_moe family (Qwen1.5-MoE, Qwen2-57B-A14B): qwen2's layers with many small experts and a
// shared one, whose output a gate of each token scales, in place of the mlp.
#include <algorithm>
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

constexpr double kCoefficient = 0.001;

Layer layer_of(const ModelConfig& config, int64_t layer) {
  AttentionBlock biased =
      attention(config, layer, {.query_key_value = config.attention_bias, .output = false});
  if (std::ranges::binary_search(config.dense_layers, layer))
    return pre_norm_layer(config, std::move(biased), gated_mlp(config));
  return pre_norm_layer(config, std::move(biased), experts_beside_shared(config));
}

Stack stack(const ModelConfig& config) {
  return decoder(config, [&](int64_t layer) { return layer_of(config, layer); });
}

// By default every other layer below max_window_layers has the window, if the file asks for any.
std::vector<int64_t> parse_windows(const JsonObject& json, int64_t layers) {
  const bool has_windows = json.boolean_or("use_sliding_window", false);
  const int64_t window = has_windows ? parse_window(json, 4096) : 0;
  if (json.has("layer_types")) return parse_layer_types(json, layers, window);
  const double end = json.number_or("max_window_layers", 28);
  std::vector<int64_t> windows(static_cast<size_t>(layers), 0);
  for (int64_t layer = 0; layer < layers; layer += 2)
    if (static_cast<double>(layer) < end) windows[static_cast<size_t>(layer)] = window;
  return windows;
}

ModelConfig parse(const JsonObject& json) {
  ModelConfig config =
      parse_shape(json, {.kv_heads = 16, .max_position = 32768, .has_experts = true});
  config.rope = parse_rope(json);
  config.attention_bias = json.boolean_or("qkv_bias", true);
  config.windows = parse_windows(json, config.num_layers);
  config.expert_size = positive_or(json, "moe_intermediate_size", 1408, kMaxIntermediate);
  config.shared_expert_size =
      positive_or(json, "shared_expert_intermediate_size", 5632, kMaxIntermediate);
  config.normalize_experts = json.boolean_or("norm_topk_prob", false);
  parse_router(json, {.experts = 60, .chosen = 4, .coefficient = kCoefficient}, config);
  parse_dense_layers(json, config);
  return config;
}

void describe(const ModelConfig& config, nlohmann::json& json) {
  json["qkv_bias"] = config.attention_bias;
  describe_window(config, json);
  describe_layer_types(config, json);
  json["use_sliding_window"] = !json["sliding_window"].is_null();
  json["num_experts"] = config.num_experts;
  json["moe_intermediate_size"] = config.expert_size;
  json["shared_expert_intermediate_size"] = config.shared_expert_size;
  json["norm_topk_prob"] = config.normalize_experts;
  describe_dense_layers(config, json);
  describe_router(config, json);
}

void qwen1_5_experts(ModelConfig& config) {
  config.attention_bias = true;
  config.num_experts = 60;
  config.chosen_experts = 4;
  config.expert_size = 1408;
  config.shared_expert_size = 5632;
  config.normalize_experts = false;
  config.router_coefficient = kCoefficient;
  set_window(config, 0);
}

void qwen2_experts(ModelConfig& config) {
  config.attention_bias = true;
  config.num_experts = 64;
  config.chosen_experts = 8;
  config.expert_size = 2560;
  config.shared_expert_size = 20480;
  config.normalize_experts = false;
  config.router_coefficient = kCoefficient;
  set_window(config, 0);
}

constexpr std::array kPresets{
    Preset{"qwen1.5-moe-a2.7b", 2048, 24, 16, 16, 128, 5632, 151936, 8192, 1e-6F, 1e6, false,
           qwen1_5_experts},
    Preset{"qwen2-57b-a14b", 3584, 28, 28, 4, 128, 18944, 151936, 131072, 1e-6F, 1e6, false,
           qwen2_experts},
};

}  // namespace

const Family kQwen2Moe{"qwen2_moe",
                       "Qwen2MoeForCausalLM",
                       stack,
                       parse,
                       describe,
                       kPresets,
                       "Qwen1.5-MoE, Qwen2-57B-A14B",
                       FamilyForm::mixture};

}  // namespace snug::models
