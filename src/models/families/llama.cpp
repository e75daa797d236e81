// The llama family: Llama 1, 2, 3, 3.1, 3.2, Code Llama, Yi, TinyLlama, SmolLM2.
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
  ModelConfig config = parse_shape(json, {});
  config.rope = parse_rope(json);
  config.attention_bias = json.boolean_or("attention_bias", false);
  config.mlp_bias = json.boolean_or("mlp_bias", false);
  return config;
}

void describe(const ModelConfig& config, nlohmann::json& json) {
  json["attention_bias"] = config.attention_bias;
  json["mlp_bias"] = config.mlp_bias;
}

template <int kFactor>
void llama3_rope(ModelConfig& config) {
  config.rope.scaling = RopeScaling::llama3;
  config.rope.factor = kFactor;
}

constexpr std::array kPresets{
    Preset{"codellama-13b", 5120, 40, 40, 40, 128, 13824, 32016, 16384, 1e-5F, 1e6, false},
    Preset{"codellama-34b", 8192, 48, 64, 8, 128, 22016, 32000, 16384, 1e-5F, 1e6, false},
    Preset{"llama-13b", 5120, 40, 40, 40, 128, 13824, 32000, 2048, 1e-6F, 1e4, false},
    Preset{"llama-2-13b", 5120, 40, 40, 40, 128, 13824, 32000, 4096, 1e-5F, 1e4, false},
    Preset{"llama-2-70b", 8192, 80, 64, 8, 128, 28672, 32000, 4096, 1e-5F, 1e4, false},
    Preset{"llama-2-7b", 4096, 32, 32, 32, 128, 11008, 32000, 4096, 1e-5F, 1e4, false},
    Preset{"llama-3-8b", 4096, 32, 32, 8, 128, 14336, 128256, 8192, 1e-5F, 5e5, false},
    Preset{"llama-3.1-70b", 8192, 80, 64, 8, 128, 28672, 128256, 131072, 1e-5F, 5e5, false,
           llama3_rope<8>},
    Preset{"llama-3.1-8b", 4096, 32, 32, 8, 128, 14336, 128256, 131072, 1e-5F, 5e5, false,
           llama3_rope<8>},
    Preset{"llama-3.2-1b", 2048, 16, 32, 8, 64, 8192, 128256, 131072, 1e-5F, 5e5, true,
           llama3_rope<32>},
    Preset{"llama-3.2-3b", 3072, 28, 24, 8, 128, 8192, 128256, 131072, 1e-5F, 5e5, true,
           llama3_rope<32>},
    Preset{"llama-30b", 6656, 60, 52, 52, 128, 17920, 32000, 2048, 1e-6F, 1e4, false},
    Preset{"llama-65b", 8192, 80, 64, 64, 128, 22016, 32000, 2048, 1e-5F, 1e4, false},
    Preset{"llama-7b", 4096, 32, 32, 32, 128, 11008, 32000, 2048, 1e-6F, 1e4, false},
    Preset{"smollm2-135m", 576, 30, 9, 3, 64, 1536, 49152, 8192, 1e-5F, 1e5, true},
    Preset{"smollm2-360m", 960, 32, 15, 5, 64, 2560, 49152, 8192, 1e-5F, 1e5, true},
    Preset{"tinyllama-1.1b", 2048, 22, 32, 4, 64, 5632, 32000, 2048, 1e-5F, 1e4, false},
    Preset{"yi-34b", 7168, 60, 56, 8, 128, 20480, 64000, 4096, 1e-5F, 5e6, false},
};

}  // namespace

const Family kLlama{"llama",
                    "LlamaForCausalLM",
                    stack,
                    parse,
                    describe,
                    kPresets,
                    "Llama 1 to 3.2, Code Llama, Yi, TinyLlama, SmolLM2"};

}  // namespace snug::models
