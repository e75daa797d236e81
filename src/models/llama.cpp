// The llama family: Llama 1, 2, 3, 3.1, 3.2, Code Llama, Yi, TinyLlama, SmolLM2.
#include <nlohmann/json.hpp>

#include "models/config_keys.h"
#include "models/families.h"
#include "models/rope.h"

namespace snug::models {
namespace {

using base::JsonObject;

void set_traits(ModelConfig&) {}

ModelConfig parse(const JsonObject& json) {
  ModelConfig config = parse_shape(json, {});
  config.rope = parse_rope(json);
  config.qkv_bias = config.output_bias = json.boolean_or("attention_bias", false);
  config.mlp_bias = json.boolean_or("mlp_bias", false);
  return config;
}

void describe(const ModelConfig& config, nlohmann::json& json) {
  json["attention_bias"] = config.qkv_bias;
  json["mlp_bias"] = config.mlp_bias;
}

}  // namespace

const Family kLlama{"llama", "LlamaForCausalLM", set_traits, parse, describe};

}  // namespace snug::models
