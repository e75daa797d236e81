// The ministral3 family (Ministral 3 of 3B, 8B and 14B, 2025): llama's network with yarn, whose
// queries grow with their positions beyond the length of the first training.
#include <array>
#include <nlohmann/json.hpp>

#include "models/config/config_keys.h"
#include "models/config/rope.h"
#include "models/families/families.h"
#include "models/families/llama_blocks.h"

namespace snug::models {
namespace {

using base::JsonObject;

Stack stack(const ModelConfig& config) {
  return decoder(config, [&](int64_t layer) {
    return pre_norm_layer(config, attention(config, layer), gated_mlp(config));
  });
}

// transformers' class has this scaling where a file gives none.
RopeConfig default_rope() {
  RopeConfig rope;
  rope.theta = 1e6;
  rope.scaling = RopeScaling::yarn;
  rope.factor = 16.0;
  rope.original_max_position = 16384;
  rope.query_beta = 0.1;
  return rope;
}

RopeConfig parse_growing_rope(const JsonObject& json) {
  const auto object = rope_object(json);
  if (!object) return default_rope();
  RopeConfig rope = parse_rope(json);
  const double beta = object->number_or("llama_4_scaling_beta", 0.0);
  if (beta == 0) return rope;
  rope.query_beta = parse_scale(*object, "llama_4_scaling_beta", beta);
  rope.original_max_position = positive(*object, "original_max_position_embeddings");
  return rope;
}

ModelConfig parse(const JsonObject& json) {
  ModelConfig config = parse_shape(
      json, {.kv_heads = 8, .head_dim = 128, .max_position = 262144, .norm_epsilon = 1e-5});
  config.rope = parse_growing_rope(json);
  set_window(config, parse_window(json, 0));
  return config;
}

void describe(const ModelConfig& config, nlohmann::json& json) {
  describe_window(config, json);
  if (config.rope.query_beta == 0) return;
  nlohmann::json& scaling = json["rope_scaling"];
  scaling["llama_4_scaling_beta"] = config.rope.query_beta;
  scaling["original_max_position_embeddings"] = config.rope.original_max_position;
}

void published(ModelConfig& config) {
  const double theta = config.rope.theta;
  config.rope = default_rope();
  config.rope.theta = theta;
}

constexpr std::array kPresets{
    Preset{"ministral-3-14b", 5120, 40, 32, 8, 128, 16384, 131072, 262144, 1e-5F, 1e9, false,
           published},
    Preset{"ministral-3-3b", 3072, 26, 32, 8, 128, 9216, 131072, 262144, 1e-5F, 1e6, true,
           published},
    Preset{"ministral-3-8b", 4096, 34, 32, 8, 128, 14336, 131072, 262144, 1e-5F, 1e6, false,
           published},
};

}  // namespace

const Family kMinistral3{"ministral3", "Ministral3ForCausalLM", stack, parse, describe, kPresets,
                         "Ministral 3"};

}  // namespace snug::models
