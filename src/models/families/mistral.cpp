// The mistral family (Jiang et al. 2023): Mistral 7B v0.1, with a sliding window in every layer,
// and v0.2 and v0.3 and Mistral Small 3, without windows.
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

ModelConfig parse(const JsonObject& json) {
  ModelConfig config = parse_shape(json, {.kv_heads = 8, .max_position = 131072});
  config.rope = parse_rope(json);
  if (json.has("layer_types"))
    json.fail("layer_types", "is present; layers that differ belong to the ministral family");
  set_window(config, parse_window(json, 4096));
  return config;
}

void describe(const ModelConfig& config, nlohmann::json& json) { describe_window(config, json); }

void window_4096(ModelConfig& config) { set_window(config, 4096); }

constexpr std::array kPresets{
    Preset{"mistral-7b-v0.1", 4096, 32, 32, 8, 128, 14336, 32000, 32768, 1e-5F, 1e4, false,
           window_4096},
    Preset{"mistral-7b-v0.2", 4096, 32, 32, 8, 128, 14336, 32000, 32768, 1e-5F, 1e6, false},
    Preset{"mistral-7b-v0.3", 4096, 32, 32, 8, 128, 14336, 32768, 32768, 1e-5F, 1e6, false},
    Preset{"mistral-small-24b-2501", 5120, 40, 32, 8, 128, 32768, 131072, 32768, 1e-5F, 1e8, false},
};

}  // namespace

const Family kMistral{"mistral",
                      "MistralForCausalLM",
                      stack,
                      parse,
                      describe,
                      kPresets,
                      "Mistral 7B, Mistral Small 3, Magistral, Devstral"};

}  // namespace snug::models
