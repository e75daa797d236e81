#include "models/families/gated_delta_blocks.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "models/config/config_keys.h"
#include "models/config/rope.h"
#include "program/kinds/recurrence/causal_convolution.h"

namespace snug::models {
namespace {

using base::JsonObject;

constexpr double kRotatedQuarter = 0.25;
constexpr int64_t kFullInterval = 4;  // every so many layers one has attention
// The sizes of a file that gives none, which are those of the 9B model.
constexpr int64_t kKeyHeads = 16;
constexpr int64_t kValueHeads = 32;
constexpr int64_t kStateDim = 128;
constexpr int64_t kConvolutionWidth = 4;

AttentionBlock gated_attention(const ModelConfig& config, int64_t layer) {
  const bool bias = config.attention_bias;
  AttentionBlock block = attention(config, layer, {bias, bias});
  block.query_key_value.parts[0].out *= 2;
  block.output_gate = true;
  block.query_norm = norm_of_one_plus_w(config, "self_attn.q_norm", config.head_dim);
  block.key_norm = norm_of_one_plus_w(config, "self_attn.k_norm", config.head_dim);
  return block;
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

}  // namespace

Norm norm_of_one_plus_w(const ModelConfig& config, std::string module, int64_t width) {
  return {std::move(module), width, config.norm_epsilon, NormForm::rms_one_plus_w};
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

Layer gated_delta_layer(const ModelConfig& config, int64_t index, GatedDeltaBlock recurrent,
                        Block mlp) {
  const int64_t hidden = config.hidden_size;
  const bool is_recurrent = std::ranges::binary_search(config.recurrent_layers, index);
  Block mixer = is_recurrent ? Block(std::move(recurrent)) : gated_attention(config, index);
  return {{{norm_of_one_plus_w(config, "input_layernorm", hidden), std::move(mixer), {}},
           {norm_of_one_plus_w(config, "post_attention_layernorm", hidden), std::move(mlp), {}}}};
}

void parse_gated_delta(const JsonObject& json, ModelConfig& config) {
  // The sections of a rotation by several positions (mrope) are one rotation where all positions
  // of a token are the same, as they are in text.
  config.rope = parse_rope(json, {.partial = true});
  // transformers' default is for an absent key; null leaves it out, so that whole heads are
  // rotated.
  const bool is_null =
      json.value().contains("partial_rotary_factor") && !json.has("partial_rotary_factor");
  config.partial_rotary_factor =
      parse_partial_rotary(json, config.head_dim, is_null ? 1.0 : kRotatedQuarter);
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
}

void describe_gated_delta(const ModelConfig& config, nlohmann::json& json) {
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

void set_published_states(ModelConfig& config, int64_t value_heads) {
  config.partial_rotary_factor = kRotatedQuarter;
  config.state_key_heads = kKeyHeads;
  config.state_value_heads = value_heads;
  config.state_key_dim = kStateDim;
  config.state_value_dim = kStateDim;
  config.convolution_width = kConvolutionWidth;
  set_recurrent_layers(config, kFullInterval);
}

}  // namespace snug::models
