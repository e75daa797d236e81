// The ernie4_5 family (ERNIE 4.5 0.3B, 2025): llama's network, in which neighbouring elements of a
// head are rotated together.
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
  const bool bias = config.attention_bias;
  Stack stack = decoder(config, [&](int64_t layer) {
    return pre_norm_layer(config, attention(config, layer, {bias, bias}), gated_mlp(config, bias));
  });
  stack.rotary.interleaved = true;
  return stack;
}

ModelConfig parse(const JsonObject& json) {
  ModelConfig config = parse_shape(json, {.kv_heads = 2,
                                          .head_dim = 128,
                                          .max_position = 131072,
                                          .norm_epsilon = 1e-5,
                                          .tied_embeddings = true});
  config.rope = parse_rope(json, {.absent_theta = 5e5});
  config.attention_bias = json.boolean_or("use_bias", false);
  return config;
}

void describe(const ModelConfig& config, nlohmann::json& json) {
  json["use_bias"] = config.attention_bias;
}

constexpr std::array kPresets{
    Preset{"ernie-4.5-0.3b", 1024, 18, 16, 2, 128, 3072, 103424, 131072, 1e-5F, 5e5, true},
};

}  // namespace

const Family kErnie45{"ernie4_5", "Ernie4_5ForCausalLM", stack, parse, describe, kPresets,
                      "ERNIE 4.5"};

}  // namespace snug::models
