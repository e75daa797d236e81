// The gemma family (Gemma 1, CodeGemma): llama's architecture with norms that multiply by 1 + w,
// embeddings scaled by the root of their width, and gelu as the activation of the mlp.
#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <string>

#include "models/config/rope.h"
#include "models/families/families.h"
#include "models/families/gemma_blocks.h"

namespace snug::models {
namespace {

using base::JsonObject;

Stack stack(const ModelConfig& config) {
  const bool bias = config.attention_bias;
  return gemma_decoder(config, [&](int64_t layer) -> Layer {
    return {{{.norm_before = gemma_norm(config, "input_layernorm"),
              .block = attention(config, layer, {bias, bias}),
              .norm_after = {}},
             {.norm_before = gemma_norm(config, "post_attention_layernorm"),
              .block = gelu_mlp(config),
              .norm_after = {}}}};
  });
}

ModelConfig parse(const JsonObject& json) {
  // The first files say gelu under hidden_act and mean the tanh form; hidden_activation means what
  // it says.
  ModelConfig config = parse_shape(json, {.kv_heads = 16,
                                          .head_dim = 256,
                                          .max_position = 8192,
                                          .tied_embeddings = true,
                                          .activations = {"gelu_pytorch_tanh", "gelu"}});
  if (const std::string activation = json.text_or("hidden_activation", "gelu_pytorch_tanh");
      activation != "gelu_pytorch_tanh")
    json.fail("hidden_activation",
              fmt::format("is \"{}\"; this family has only gelu_pytorch_tanh", activation));
  config.rope = parse_rope(json);
  config.attention_bias = json.boolean_or("attention_bias", false);
  refuse_bidirectional(json);
  return config;
}

void describe(const ModelConfig& config, nlohmann::json& json) {
  json["attention_bias"] = config.attention_bias;
  json["hidden_act"] = json["hidden_activation"] = "gelu_pytorch_tanh";
}

constexpr std::array kPresets{
    Preset{"gemma-2b", 2048, 18, 8, 1, 256, 16384, 256000, 8192, 1e-6F, 1e4, true},
    Preset{"gemma-7b", 3072, 28, 16, 16, 256, 24576, 256000, 8192, 1e-6F, 1e4, true},
};

}  // namespace

const Family kGemma{"gemma", "GemmaForCausalLM", stack, parse, describe, kPresets, "Gemma 1"};

}  // namespace snug::models
