// The qwen2 family: Qwen2 and Qwen2.5. Biases on q, k and v alone; sliding windows, where a file
// asks for them, in the layers from max_window_layers on.
#include <nlohmann/json.hpp>

#include "models/config_keys.h"
#include "models/families.h"
#include "models/rope.h"

namespace snug::models {
namespace {

using base::JsonObject;

void set_traits(ModelConfig& config) { config.qkv_bias = true; }

ModelConfig parse(const JsonObject& json) {
  ModelConfig config = parse_shape(json, {.kv_heads = 32, .max_position = 32768});
  set_traits(config);
  config.rope = parse_rope(json);
  config.windows = parse_layer_windows(json, config.num_layers);
  return config;
}

void describe(const ModelConfig& config, nlohmann::json& json) {
  describe_layer_windows(config, json);
}

}  // namespace

const Family kQwen2{"qwen2", "Qwen2ForCausalLM", set_traits, parse, describe};

}  // namespace snug::models
