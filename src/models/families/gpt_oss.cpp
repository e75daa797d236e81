// The gpt_oss family (gpt-oss 20B and 120B): every other layer has a window; each head's softmax
// has a sink; experts have biases and a clamped gate.
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "models/config/config_keys.h"
#include "models/config/rope.h"
#include "models/config/router_keys.h"
#include "models/families/families.h"
#include "models/families/llama_blocks.h"

namespace snug::models {
namespace {

using base::JsonObject;

constexpr int64_t kWindow = 128;

// By default layers 0, 2, 4, ... have the sliding window.
constexpr int64_t kPattern = 2;

constexpr double kTheta = 150000;
constexpr double kLimit = 7.0;
constexpr double kAlpha = 1.702;

// The router's weights are a softmax over the chosen experts. Normalized probabilities are the
// same: the softmax over all experts, divided by the sum over the chosen ones.
ExpertsBlock experts(const ModelConfig& config) {
  return {.router = {"mlp.router", config.num_experts, config.hidden_size, true},
          .experts = config.num_experts,
          .chosen = config.chosen_experts,
          .normalize = true,
          .module = "mlp.experts",
          .gate = "gate_up_proj",
          .up = "",
          .down = "down_proj",
          .inner = config.expert_size,
          .files = ExpertFiles::together,
          .bias = true,
          .clamped_gate = {static_cast<float>(config.gate_limit),
                           static_cast<float>(config.gate_alpha)}};
}

Stack stack(const ModelConfig& config) {
  return decoder(config, [&](int64_t layer) {
    const bool bias = config.attention_bias;
    AttentionBlock with_sinks = attention(config, layer, {bias, bias});
    with_sinks.sinks = "self_attn.sinks";
    return pre_norm_layer(config, std::move(with_sinks), experts(config));
  });
}

// yarn with the settings of the published models, the default of a file without a scaling.
void set_published_rope(RopeConfig& rope) {
  rope.scaling = RopeScaling::yarn;
  rope.factor = 32;
  rope.original_max_position = 4096;
  rope.truncate = false;
  rope.attention_factor = 0.1 * std::log(rope.factor) + 1;
}

// A number above 0 that fp32 can represent.
double parse_gate(const JsonObject& json, const char* key, double absent) {
  const double value = json.number_or(key, absent);
  if (!(value > 0) || !std::isnormal(static_cast<float>(value)))
    json.fail(key, "is no number above 0 that fp32 can hold");
  return value;
}

ModelConfig parse(const JsonObject& json) {
  ModelConfig config = parse_shape(json, {.kv_heads = 8,
                                          .head_dim = 64,
                                          .max_position = 131072,
                                          .norm_epsilon = 1e-5,
                                          .has_experts = true});
  config.rope = parse_rope(json, {.absent_theta = kTheta});
  const bool is_scaled = json.has("rope_scaling") && !json.value().at("rope_scaling").empty();
  if (!is_scaled && !json.has("rope_parameters")) set_published_rope(config.rope);
  config.attention_bias = json.boolean_or("attention_bias", true);
  const int64_t window = parse_window(json, kWindow);
  set_window_pattern(config, window, kPattern);
  if (json.has("layer_types")) config.windows = parse_layer_types(json, config.num_layers, window);
  config.expert_size = config.intermediate_size;
  config.gate_limit = parse_gate(json, "swiglu_limit", kLimit);
  config.gate_alpha = parse_gate(json, "swiglu_alpha", kAlpha);
  parse_router(json, {.experts = 128, .chosen = 4}, config);
  return config;
}

void describe(const ModelConfig& config, nlohmann::json& json) {
  if (config.rope.scaling == RopeScaling::none)
    json["rope_scaling"] = {{"rope_type", base::word_of(RopeScaling::none)}};
  json["attention_bias"] = config.attention_bias;
  describe_window(config, json);
  describe_layer_types(config, json);
  json["num_local_experts"] = config.num_experts;
  json["swiglu_limit"] = config.gate_limit;
  json["swiglu_alpha"] = config.gate_alpha;
  describe_router(config, json);
}

template <int64_t kExperts>
void published(ModelConfig& config) {
  set_published_rope(config.rope);
  set_window_pattern(config, kWindow, kPattern);
  config.attention_bias = true;
  config.num_experts = kExperts;
  config.chosen_experts = 4;
  config.expert_size = config.intermediate_size;
  config.gate_limit = kLimit;
  config.gate_alpha = kAlpha;
  config.router_coefficient = 0.9;
}

constexpr std::array kPresets{
    Preset{"gpt-oss-120b", 2880, 36, 64, 8, 64, 2880, 201088, 131072, 1e-5F, kTheta, false,
           published<128>},
    Preset{"gpt-oss-20b", 2880, 24, 64, 8, 64, 2880, 201088, 131072, 1e-5F, kTheta, false,
           published<32>},
};

}  // namespace

const Family kGptOss{"gpt_oss", "GptOssForCausalLM", stack, parse, describe, kPresets,
                     "gpt-oss", FamilyForm::mixture};

}  // namespace snug::models
