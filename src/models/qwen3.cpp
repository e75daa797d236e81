// The qwen3 family, its dense models: each query and key head is normed before it is rotated, and
// head_dim is a number of its own.
#include <nlohmann/json.hpp>

#include "models/config_keys.h"
#include "models/families.h"
#include "models/rope.h"

namespace snug::models {
namespace {

using base::JsonObject;

void set_traits(ModelConfig& config) { config.qk_norm = true; }

ModelConfig parse(const JsonObject& json) {
  ModelConfig config = parse_shape(json, {.kv_heads = 32, .head_dim = 128, .max_position = 32768});
  set_traits(config);
  config.rope = parse_rope(json);
  config.qkv_bias = config.output_bias = json.boolean_or("attention_bias", false);
  config.windows = parse_layer_windows(json, config.num_layers);
  return config;
}

void describe(const ModelConfig& config, nlohmann::json& json) {
  json["attention_bias"] = config.qkv_bias;
  describe_layer_windows(config, json);
}

}  // namespace

const Family kQwen3{"qwen3", "Qwen3ForCausalLM", set_traits, parse, describe};

}  // namespace snug::models
