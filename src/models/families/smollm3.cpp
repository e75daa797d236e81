// The smollm3 family (SmolLM3, 2025): llama's network, in which every fourth layer does not rotate
// queries and keys. Those layers may have a sliding window.
#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <vector>

#include "models/config/config_keys.h"
#include "models/config/rope.h"
#include "models/families/families.h"
#include "models/families/llama_blocks.h"

namespace snug::models {
namespace {

using base::JsonObject;

Stack stack(const ModelConfig& config) {
  const bool bias = config.attention_bias;
  return decoder(config, [&](int64_t layer) {
    return pre_norm_layer(config, attention(config, layer, {bias, bias}),
                          gated_mlp(config, config.mlp_bias));
  });
}

// no_rope_layers says 1 of a layer that is rotated, and 0 of one that is not.
std::vector<int64_t> parse_unrotated_layers(const JsonObject& json, int64_t num_layers) {
  std::vector<int64_t> unrotated;
  if (!json.has("no_rope_layers")) {
    const int64_t interval = positive_or(json, "no_rope_layer_interval", 4);
    for (int64_t layer = interval - 1; layer < num_layers; layer += interval)
      unrotated.push_back(layer);
    return unrotated;
  }
  const std::vector<double> rotated = json.numbers("no_rope_layers");
  if (static_cast<int64_t>(rotated.size()) < num_layers)
    json.fail("no_rope_layers", fmt::format("says something of {} layers; the model has {}",
                                            rotated.size(), num_layers));
  for (int64_t layer = 0; layer < num_layers; ++layer)
    if (rotated[static_cast<size_t>(layer)] == 0) unrotated.push_back(layer);
  return unrotated;
}

ModelConfig parse(const JsonObject& json) {
  ModelConfig config =
      parse_shape(json, {.kv_heads = 4, .max_position = 32768, .tied_embeddings = true});
  config.rope = parse_rope(json, {.absent_theta = 2e6});
  config.attention_bias = json.boolean_or("attention_bias", false);
  config.mlp_bias = json.boolean_or("mlp_bias", false);
  config.unrotated_layers = parse_unrotated_layers(json, config.num_layers);
  const int64_t window = json.boolean_or("use_sliding_window", false) ? parse_window(json, 0) : 0;
  set_window(config, 0);
  for (const int64_t layer : config.unrotated_layers)
    config.windows[static_cast<size_t>(layer)] = window;
  if (json.has("layer_types"))
    config.windows =
        parse_layer_types(json, config.num_layers, window, "use_sliding_window and sliding_window");
  return config;
}

void describe(const ModelConfig& config, nlohmann::json& json) {
  json["attention_bias"] = config.attention_bias;
  json["mlp_bias"] = config.mlp_bias;
  std::vector<int> rotated(static_cast<size_t>(config.num_layers), 1);
  for (const int64_t layer : config.unrotated_layers) rotated[static_cast<size_t>(layer)] = 0;
  json["no_rope_layers"] = rotated;
  describe_window(config, json);
  json["use_sliding_window"] = !json["sliding_window"].is_null();
  describe_layer_types(config, json);
}

void every_fourth(ModelConfig& config) {
  for (int64_t layer = 3; layer < config.num_layers; layer += 4)
    config.unrotated_layers.push_back(layer);
  set_window(config, 0);
}

constexpr std::array kPresets{
    Preset{"smollm3-3b", 2048, 36, 16, 4, 128, 11008, 128256, 65536, 1e-6F, 5e6, true,
           every_fourth},
};

}  // namespace

const Family kSmolLm3{"smollm3", "SmolLM3ForCausalLM", stack, parse, describe, kPresets, "SmolLM3"};

}  // namespace snug::models
