// The seed_oss family (Seed-OSS 36B, 2025): llama's network with biases on queries, keys and
// values.
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
    return pre_norm_layer(
        config, attention(config, layer, {config.attention_bias, config.attention_output_bias}),
        gated_mlp(config, config.mlp_bias));
  });
}

ModelConfig parse(const JsonObject& json) {
  ModelConfig config = parse_shape(json, {.kv_heads = 8,
                                          .head_dim = 128,
                                          .max_position = 524288,
                                          .dropout_keys = {"attention_dropout", "residual_dropout"},
                                          .dropout = 0.1});
  config.rope = parse_rope(json);
  config.attention_bias = json.boolean_or("attention_bias", true);
  config.attention_output_bias = json.boolean_or("attention_out_bias", false);
  config.mlp_bias = json.boolean_or("mlp_bias", false);
  return config;
}

void describe(const ModelConfig& config, nlohmann::json& json) {
  json["attention_bias"] = config.attention_bias;
  json["attention_out_bias"] = config.attention_output_bias;
  json["mlp_bias"] = config.mlp_bias;
  json["residual_dropout"] = 0.0;
}

void biased(ModelConfig& config) { config.attention_bias = true; }

constexpr std::array kPresets{
    Preset{"seed-oss-36b", 5120, 64, 80, 8, 128, 27648, 155136, 524288, 1e-6F, 1e7, false, biased},
};

}  // namespace

const Family kSeedOss{"seed_oss", "SeedOssForCausalLM", stack, parse, describe, kPresets,
                      "Seed-OSS"};

}  // namespace snug::models
