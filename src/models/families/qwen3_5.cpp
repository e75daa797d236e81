// The qwen3_5_text family (the text part of Qwen 3.5, 3.6 and 3.8, dense models): three layers of
// gated delta nets to one of attention, whose heads have a gate, and norms that multiply by 1 + w.
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "models/config/config_keys.h"
#include "models/config/rope.h"
#include "models/families/families.h"
#include "models/families/llama_blocks.h"
#include "program/kinds/recurrence/causal_convolution.h"

namespace snug::models {
namespace {

using base::JsonObject;

constexpr double kRotatedPart = 0.25;
constexpr int64_t kFullInterval = 4;  // every so many layers one has attention
// The sizes of a file that gives none, which are those of the 9B model.
constexpr int64_t kKeyHeads = 16;
constexpr int64_t kValueHeads = 32;
constexpr int64_t kStateDim = 128;
constexpr int64_t kConvolutionWidth = 4;

Norm one_plus_w(const ModelConfig& config, std::string module, int64_t width) {
  return {std::move(module), width, config.norm_epsilon, NormForm::rms_one_plus_w};
}

AttentionBlock gated_attention(const ModelConfig& config, int64_t layer) {
  const bool bias = config.attention_bias;
  AttentionBlock block = attention(config, layer, {bias, bias});
  block.query_key_value.parts[0].out *= 2;
  block.output_gate = true;
  block.query_norm = one_plus_w(config, "self_attn.q_norm", config.head_dim);
  block.key_norm = one_plus_w(config, "self_attn.k_norm", config.head_dim);
  return block;
}

GatedDeltaBlock gated_delta_net(const ModelConfig& config) {
  const int64_t hidden = config.hidden_size;
  const int64_t keys = config.state_key_heads * config.state_key_dim;
  const int64_t values = config.state_value_heads * config.state_value_dim;
  return {.key_heads = config.state_key_heads,
          .value_heads = config.state_value_heads,
          .key_dim = config.state_key_dim,
          .value_dim = config.state_value_dim,
          .query_key_value = {"linear_attn.in_proj_qkv", 2 * keys + values, hidden},
          .gate = {"linear_attn.in_proj_z", values, hidden},
          .beta = {"linear_attn.in_proj_b", config.state_value_heads, hidden},
          .decay = {"linear_attn.in_proj_a", config.state_value_heads, hidden},
          .convolution = "linear_attn.conv1d",
          .convolution_width = config.convolution_width,
          .decay_rate = "linear_attn.A_log",
          .decay_bias = "linear_attn.dt_bias",
          .norm = rms_norm(config, "linear_attn.norm", config.state_value_dim),
          .output = {"linear_attn.out_proj", hidden, values}};
}

Layer layer_of(const ModelConfig& config, int64_t index) {
  const int64_t hidden = config.hidden_size;
  const bool is_recurrent = std::ranges::binary_search(config.recurrent_layers, index);
  Block mixer = is_recurrent ? Block(gated_delta_net(config)) : gated_attention(config, index);
  return {{{one_plus_w(config, "input_layernorm", hidden), std::move(mixer), {}},
           {one_plus_w(config, "post_attention_layernorm", hidden), gated_mlp(config), {}}}};
}

Stack stack(const ModelConfig& config) {
  Stack stack = decoder(config, [&](int64_t layer) { return layer_of(config, layer); });
  stack.final_norm = one_plus_w(config, "model.norm", config.hidden_size);
  return stack;
}

void set_recurrent_layers(ModelConfig& config, int64_t interval) {
  for (int64_t layer = 0; layer < config.num_layers; ++layer)
    if ((layer + 1) % interval != 0) config.recurrent_layers.push_back(layer);
}

void parse_recurrent_layers(const JsonObject& json, ModelConfig& config) {
  if (!json.has("layer_types"))
    return set_recurrent_layers(config,
                                positive_or(json, "full_attention_interval", kFullInterval));
  const std::vector<std::string> types = json.texts("layer_types");
  if (types.size() != static_cast<size_t>(config.num_layers))
    json.fail("layer_types", "has not one word for each layer");
  for (size_t layer = 0; layer < types.size(); ++layer) {
    if (types[layer] == "linear_attention")
      config.recurrent_layers.push_back(static_cast<int64_t>(layer));
    else if (types[layer] != "full_attention")
      json.fail("layer_types", "has another word than linear_attention and full_attention");
  }
}

ModelConfig parse(const JsonObject& json) {
  ModelConfig config = parse_shape(
      json,
      {.heads = 16, .vocab_size = 248320, .kv_heads = 4, .head_dim = 256, .max_position = 32768});
  // The sections of a rotation by several positions (mrope) are one rotation where all positions
  // of a token are the same, as they are in text.
  config.rope = parse_rope(json, {.partial = true});
  config.partial_rotary_factor = parse_partial_rotary(json, config.head_dim, kRotatedPart);
  config.attention_bias = json.boolean_or("attention_bias", false);
  if (!json.boolean_or("attn_output_gate", true))
    json.fail("attn_output_gate", "is false; attention of this family has a gate");
  config.state_key_heads = positive_or(json, "linear_num_key_heads", kKeyHeads, kMaxHeads);
  config.state_value_heads = positive_or(json, "linear_num_value_heads", kValueHeads, kMaxHeads);
  config.state_key_dim = positive_or(json, "linear_key_head_dim", kStateDim, kMaxHeads);
  config.state_value_dim = positive_or(json, "linear_value_head_dim", kStateDim, kMaxHeads);
  config.convolution_width = positive_or(json, "linear_conv_kernel_dim", kConvolutionWidth,
                                         program::kMostConvolutionWidth);
  if (config.state_value_heads % config.state_key_heads != 0)
    json.fail("linear_num_value_heads", "is no multiple of linear_num_key_heads");
  parse_recurrent_layers(json, config);
  return config;
}

void describe(const ModelConfig& config, nlohmann::json& json) {
  json["attention_bias"] = config.attention_bias;
  json["partial_rotary_factor"] = config.partial_rotary_factor;
  json["linear_num_key_heads"] = config.state_key_heads;
  json["linear_num_value_heads"] = config.state_value_heads;
  json["linear_key_head_dim"] = config.state_key_dim;
  json["linear_value_head_dim"] = config.state_value_dim;
  json["linear_conv_kernel_dim"] = config.convolution_width;
  for (int64_t layer = 0; layer < config.num_layers; ++layer) {
    const bool is_recurrent = std::ranges::binary_search(config.recurrent_layers, layer);
    json["layer_types"].push_back(is_recurrent ? "linear_attention" : "full_attention");
  }
}

void published(ModelConfig& config, int64_t value_heads) {
  config.partial_rotary_factor = kRotatedPart;
  config.state_key_heads = kKeyHeads;
  config.state_value_heads = value_heads;
  config.state_key_dim = kStateDim;
  config.state_value_dim = kStateDim;
  config.convolution_width = kConvolutionWidth;
  set_recurrent_layers(config, kFullInterval);
}

void small(ModelConfig& config) { published(config, 16); }
void medium(ModelConfig& config) { published(config, 32); }
void large(ModelConfig& config) { published(config, 48); }

// The text part alone, without images and without the layers that predict further tokens. Qwen 3.6
// and 3.8 have the shape of 3.5.
constexpr std::array kPresets{
    Preset{"qwen3.5-0.8b", 1024, 24, 8, 2, 256, 3584, 248320, 262144, 1e-6F, 1e7, true, small},
    Preset{"qwen3.5-27b", 5120, 64, 24, 4, 256, 17408, 248320, 262144, 1e-6F, 1e7, false, large},
    Preset{"qwen3.5-2b", 2048, 24, 8, 2, 256, 6144, 248320, 262144, 1e-6F, 1e7, true, small},
    Preset{"qwen3.5-4b", 2560, 32, 16, 4, 256, 9216, 248320, 262144, 1e-6F, 1e7, true, medium},
    Preset{"qwen3.5-9b", 4096, 32, 16, 4, 256, 12288, 248320, 262144, 1e-6F, 1e7, false, medium},
    Preset{"qwen3.6-27b", 5120, 64, 24, 4, 256, 17408, 248320, 262144, 1e-6F, 1e7, false, large},
    Preset{"qwen3.8-27b", 5120, 64, 24, 4, 256, 17408, 248320, 262144, 1e-6F, 1e7, false, large},
};

}  // namespace

const Family kQwen35{"qwen3_5_text", "Qwen3_5ForCausalLM",       stack, parse, describe,
                     kPresets,       "Qwen3.5, Qwen3.6, Qwen3.8"};

}  // namespace snug::models
