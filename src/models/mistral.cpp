// The mistral family (Jiang et al. 2023): Mistral 7B v0.1, whose every layer has a sliding window,
// v0.2 and v0.3, which have none.
#include <nlohmann/json.hpp>

#include "models/config_keys.h"
#include "models/families.h"
#include "models/rope.h"

namespace snug::models {
namespace {

using base::JsonObject;

void set_traits(ModelConfig&) {}

ModelConfig parse(const JsonObject& json) {
  ModelConfig config = parse_shape(json, {.kv_heads = 8, .max_position = 131072});
  config.rope = parse_rope(json);
  if (json.has("layer_types"))
    json.fail("layer_types", "is present; layers that differ belong to the ministral family");
  config.windows.assign(static_cast<size_t>(config.num_layers), parse_window(json, 4096));
  return config;
}

void describe(const ModelConfig& config, nlohmann::json& json) {
  json["sliding_window"] = nullptr;
  if (config.window_of(0) > 0) json["sliding_window"] = config.window_of(0);
}

}  // namespace

const Family kMistral{"mistral", "MistralForCausalLM", set_traits, parse, describe};

}  // namespace snug::models
