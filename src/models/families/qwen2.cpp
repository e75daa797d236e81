// The qwen2 family: Qwen2 and Qwen2.5. Only q, k and v have biases; the layers from
// max_window_layers on have sliding windows if the file asks for them.
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
    return pre_norm_layer(config, attention(config, layer, {.query_key_value = true}),
                          gated_mlp(config));
  });
}

ModelConfig parse(const JsonObject& json) {
  ModelConfig config = parse_shape(json, {.kv_heads = 32, .max_position = 32768});
  config.rope = parse_rope(json);
  config.windows = parse_layer_windows(json, config.num_layers);
  return config;
}

void describe(const ModelConfig& config, nlohmann::json& json) {
  describe_layer_windows(config, json);
}

constexpr std::array kPresets{
    Preset{"qwen2-7b", 3584, 28, 28, 4, 128, 18944, 152064, 131072, 1e-6F, 1e6, false},
    Preset{"qwen2.5-0.5b", 896, 24, 14, 2, 64, 4864, 151936, 32768, 1e-6F, 1e6, true},
    Preset{"qwen2.5-1.5b", 1536, 28, 12, 2, 128, 8960, 151936, 131072, 1e-6F, 1e6, true},
    Preset{"qwen2.5-14b", 5120, 48, 40, 8, 128, 13824, 152064, 131072, 1e-5F, 1e6, false},
    Preset{"qwen2.5-32b", 5120, 64, 40, 8, 128, 27648, 152064, 131072, 1e-5F, 1e6, false},
    Preset{"qwen2.5-3b", 2048, 36, 16, 2, 128, 11008, 151936, 32768, 1e-6F, 1e6, true},
    Preset{"qwen2.5-72b", 8192, 80, 64, 8, 128, 29568, 152064, 131072, 1e-5F, 1e6, false},
    Preset{"qwen2.5-7b", 3584, 28, 28, 4, 128, 18944, 152064, 131072, 1e-6F, 1e6, false},
};

}  // namespace

const Family kQwen2{"qwen2",  "Qwen2ForCausalLM", stack,           parse,
                    describe, kPresets,           "Qwen2, Qwen2.5"};

}  // namespace snug::models
