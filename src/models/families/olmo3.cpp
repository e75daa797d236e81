// The olmo3 family (OLMo 3, 2025): OLMo 2's layers, of which three of four have a sliding window
// and rotary frequencies that are never scaled.
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

constexpr double kTheta = 5e5;

Layer layer_of(const ModelConfig& config, int64_t layer) {
  const bool bias = config.attention_bias;
  AttentionBlock normed = attention(config, layer, {bias, bias});
  normed.query_norm = rms_norm(config, "self_attn.q_norm", normed.heads * normed.head_dim);
  normed.key_norm = rms_norm(config, "self_attn.k_norm", normed.kv_heads * normed.head_dim);
  return post_norm_layer(config, std::move(normed), gated_mlp(config));
}

Stack stack(const ModelConfig& config) {
  return decoder(config, [&](int64_t layer) { return layer_of(config, layer); });
}

ModelConfig parse(const JsonObject& json) {
  ModelConfig config = parse_shape(json, {.norm_epsilon = 1e-5});
  auto [full, local] = parse_layer_ropes(json, kTheta, kTheta);
  config.rope = std::move(full);
  config.local_rope = std::move(local);
  config.attention_bias = json.boolean_or("attention_bias", false);
  const int64_t window = parse_window(json, 4096);
  if (window == 0) json.fail("sliding_window", "is null; this family has layers with a window");
  set_window_pattern(config, window, 4);
  if (json.has("layer_types")) config.windows = parse_layer_types(json, config.num_layers, window);
  return config;
}

void describe(const ModelConfig& config, nlohmann::json& json) {
  json["attention_bias"] = config.attention_bias;
  describe_window(config, json);
  describe_layer_types(config, json);
  if (config.local_rope->theta == kTheta) return;
  // A flat rope_theta would be that of the layers without a window alone.
  nlohmann::json full = json.value("rope_scaling", nlohmann::json());
  if (!full.is_object()) full = {{"rope_type", "default"}};
  full["rope_theta"] = config.rope.theta;
  json["rope_parameters"] = {
      {"full_attention", std::move(full)},
      {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", config.local_rope->theta}}}};
  json.erase("rope_theta");
  json.erase("rope_scaling");
}

void published(ModelConfig& config) {
  RopeConfig& rope = config.rope;
  rope.scaling = RopeScaling::yarn;
  rope.factor = 8.0;
  rope.original_max_position = 8192;
  rope.attention_factor = 1.2079441541679836;
  config.local_rope.emplace().theta = kTheta;
  set_window_pattern(config, 4096, 4);
}

constexpr std::array kPresets{
    Preset{"olmo-3-32b", 5120, 64, 40, 8, 128, 27648, 100278, 65536, 1e-6F, kTheta, false,
           published},
    Preset{"olmo-3-7b", 4096, 32, 32, 32, 128, 11008, 100278, 65536, 1e-6F, kTheta, false,
           published},
};

}  // namespace

const Family kOlmo3{"olmo3", "Olmo3ForCausalLM", stack, parse, describe, kPresets, "OLMo 3"};

}  // namespace snug::models
