// The granite family (IBM Granite 3 and 4.1, the dense models): llama's network with four factors:
// of the embedding, of what each block adds to the residual stream, of attention scores, and of the
// logits.
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
  return decoder(config, [&](int64_t layer) {
    return pre_norm_layer(config, attention(config, layer, {bias, bias}),
                          gated_mlp(config, config.mlp_bias));
  });
}

ModelConfig parse(const JsonObject& json) {
  ModelConfig config = parse_shape(json, {.dropout_keys = {"attention_dropout"}});
  config.rope = parse_rope(json);
  config.attention_bias = json.boolean_or("attention_bias", false);
  config.mlp_bias = json.boolean_or("mlp_bias", false);
  parse_granite_scales(json, config);
  return config;
}

void describe(const ModelConfig& config, nlohmann::json& json) {
  json["attention_bias"] = config.attention_bias;
  json["mlp_bias"] = config.mlp_bias;
  describe_granite_scales(config, json);
}

template <int kLogitDivisor>
void granite_3(ModelConfig& config) {
  config.embedding_scale = 12.0;
  config.residual_scale = 0.22;
  config.attention_scale = 1.0 / static_cast<double>(config.head_dim);
  config.logit_scale = 1.0 / kLogitDivisor;
}

constexpr std::array kPresets{
    Preset{"granite-3.3-2b", 2048, 40, 32, 8, 64, 8192, 49159, 131072, 1e-5F, 1e7, true,
           granite_3<8>},
    Preset{"granite-3.3-8b", 4096, 40, 32, 8, 128, 12800, 49159, 131072, 1e-5F, 1e7, true,
           granite_3<16>},
};

}  // namespace

const Family kGranite{"granite", "GraniteForCausalLM", stack, parse, describe,
                      kPresets,  "Granite 3 and 4.1"};

}  // namespace snug::models
