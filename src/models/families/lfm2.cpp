// The lfm2 family (LFM2 and LFM2.5, dense models): gated short convolutions in most layers, and in
// the others attention with norms of heads.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
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

AttentionBlock normed_attention(const ModelConfig& config, int64_t layer) {
  AttentionBlock block = attention(config, layer);
  block.query_norm = rms_norm(config, "self_attn.q_layernorm", config.head_dim);
  block.key_norm = rms_norm(config, "self_attn.k_layernorm", config.head_dim);
  block.output.module = "self_attn.out_proj";
  return block;
}

ShortConvolutionBlock short_convolution(const ModelConfig& config) {
  const int64_t hidden = config.hidden_size;
  return {.input = {"conv.in_proj", 3 * hidden, hidden},
          .convolution = "conv.conv",
          .convolution_width = config.convolution_width,
          .output = {"conv.out_proj", hidden, hidden}};
}

GatedMlp numbered_mlp(const ModelConfig& config) {
  GatedMlp mlp = gated_mlp(config);
  mlp.gate_up.parts[0].module = "feed_forward.w1";
  mlp.gate_up.parts[1].module = "feed_forward.w3";
  mlp.down.module = "feed_forward.w2";
  return mlp;
}

Layer layer_of(const ModelConfig& config, int64_t index) {
  const bool convolves = std::ranges::binary_search(config.recurrent_layers, index);
  Block mixer = convolves ? Block(short_convolution(config)) : normed_attention(config, index);
  return {{{rms_norm(config, "operator_norm"), std::move(mixer), {}},
           {rms_norm(config, "ffn_norm"), numbered_mlp(config), {}}}};
}

Stack stack(const ModelConfig& config) {
  Stack stack = decoder(config, [&](int64_t layer) { return layer_of(config, layer); });
  stack.final_norm = rms_norm(config, "model.embedding_norm");
  return stack;
}

// Where a file lists no layer_types, it lists the layers with attention; without either all have
// attention.
void parse_convolutions(const JsonObject& json, ModelConfig& config) {
  const auto add = [&](int64_t layer) { config.recurrent_layers.push_back(layer); };
  if (json.has("layer_types")) {
    const std::vector<std::string> types = json.texts("layer_types");
    if (types.size() != static_cast<size_t>(config.num_layers))
      json.fail("layer_types", "has not one word for each layer");
    for (size_t layer = 0; layer < types.size(); ++layer) {
      if (types[layer] == "conv")
        add(static_cast<int64_t>(layer));
      else if (types[layer] != "full_attention")
        json.fail("layer_types", "has another word than conv and full_attention");
    }
  } else if (json.has("full_attn_idxs")) {
    const std::vector<double> attending = json.numbers("full_attn_idxs");
    for (int64_t layer = 0; layer < config.num_layers; ++layer)
      if (std::ranges::count(attending, static_cast<double>(layer)) == 0) add(layer);
  }
}

// Files give a size of which the mlp has two thirds, rounded up to a multiple, unless they say that
// it is the mlp's own.
int64_t adjusted_size(const JsonObject& json, int64_t given) {
  if (!json.boolean_or("block_auto_adjust_ff_dim", true)) return given;
  constexpr std::string_view kFactor = "block_ffn_dim_multiplier";
  const int64_t two_thirds = 2 * given / 3;
  const bool is_null = json.value().contains(kFactor) && !json.has(kFactor);
  auto size = static_cast<double>(two_thirds);
  if (!is_null) {
    const auto multiple =
        static_cast<double>(positive_or(json, "block_multiple_of", 256, kMaxIntermediate));
    size = std::trunc(json.number_or(kFactor, 1.0) * size);
    size = std::ceil(size / multiple) * multiple;
  }
  if (!(size >= 1 && size <= static_cast<double>(kMaxIntermediate)))
    json.fail(kFactor,
              fmt::format("makes an mlp of {} elements of intermediate_size {}", size, given));
  return static_cast<int64_t>(size);
}

ModelConfig parse(const JsonObject& json) {
  const std::string_view intermediate = key_present(json, {"block_ff_dim", "intermediate_size"});
  ModelConfig config = parse_shape(json, {.keys = {.intermediate = intermediate},
                                          .kv_heads = 8,
                                          .max_position = 128000,
                                          .norm_epsilon = 1e-5,
                                          .tied_embeddings = true,
                                          .norm_epsilon_key = "norm_eps",
                                          .activations = {}});
  config.tied_embeddings = json.boolean_or("tie_embedding", config.tied_embeddings);
  config.intermediate_size = adjusted_size(json, config.intermediate_size);
  config.rope = parse_rope(json, {.absent_theta = 1e6});
  if (json.boolean_or("conv_bias", false))
    json.fail("conv_bias", "is true; short convolutions have no biases here");
  config.convolution_width = positive_or(json, "conv_L_cache", 3, program::kMostConvolutionWidth);
  parse_convolutions(json, config);
  return config;
}

void describe(const ModelConfig& config, nlohmann::json& json) {
  rename_key(json, "rms_norm_eps", "norm_eps");
  json.erase("hidden_act");
  json["block_auto_adjust_ff_dim"] = false;
  json["conv_bias"] = false;
  json["conv_L_cache"] = config.convolution_width;
  for (int64_t layer = 0; layer < config.num_layers; ++layer) {
    const bool convolves = std::ranges::binary_search(config.recurrent_layers, layer);
    json["layer_types"].push_back(convolves ? "conv" : "full_attention");
  }
}

void attending_in(ModelConfig& config, std::initializer_list<int64_t> layers) {
  config.convolution_width = 3;
  for (int64_t layer = 0; layer < config.num_layers; ++layer)
    if (std::ranges::count(layers, layer) == 0) config.recurrent_layers.push_back(layer);
}

void sixteen_layers(ModelConfig& config) { attending_in(config, {2, 5, 8, 10, 12, 14}); }
void thirty_layers(ModelConfig& config) { attending_in(config, {2, 5, 9, 13, 17, 21, 24, 27}); }

constexpr Preset of_1_2b(std::string_view name) {
  return {name, 2048, 16, 32, 8, 64, 8192, 65536, 128000, 1e-5F, 1e6, true, sixteen_layers};
}

constexpr Preset of_350m(std::string_view name) {
  return {name, 1024, 16, 16, 8, 64, 4608, 65536, 128000, 1e-5F, 1e6, true, sixteen_layers};
}

constexpr std::array kPresets{
    of_350m("lfm2-350m"),
    Preset{"lfm2-700m", 1536, 16, 24, 8, 64, 6912, 65536, 128000, 1e-5F, 1e6, true, sixteen_layers},
    of_1_2b("lfm2-1.2b"),
    Preset{"lfm2-2.6b", 2048, 30, 32, 8, 64, 10752, 65536, 128000, 1e-5F, 1e6, true, thirty_layers},
    of_350m("lfm2.5-350m"),
    of_1_2b("lfm2.5-1.2b"),
};

}  // namespace

const Family kLfm2{"lfm2", "Lfm2ForCausalLM", stack, parse, describe, kPresets, "LFM2, LFM2.5"};

}  // namespace snug::models
