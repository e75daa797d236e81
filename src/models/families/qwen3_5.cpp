// The qwen3_5_text family (the text part of Qwen 3.5, 3.6 and 3.8, dense models): three layers of
// gated delta nets to one of attention, whose heads have a gate, and norms that multiply by 1 + w.
#include <array>

#include "models/config/config_keys.h"
#include "models/families/families.h"
#include "models/families/gated_delta_blocks.h"

namespace snug::models {
namespace {

Stack stack(const ModelConfig& config) {
  return gated_delta_decoder(config, [&](int64_t layer) {
    return gated_delta_layer(config, layer, gated_delta_net(config), gated_mlp(config));
  });
}

ModelConfig parse(const base::JsonObject& json) {
  ModelConfig config = parse_shape(
      json,
      {.heads = 16, .vocab_size = 248320, .kv_heads = 4, .head_dim = 256, .max_position = 32768});
  parse_gated_delta(json, config);
  return config;
}

void small(ModelConfig& config) { set_published_states(config, 16); }
void medium(ModelConfig& config) { set_published_states(config, 32); }
void large(ModelConfig& config) { set_published_states(config, 48); }

// The text part alone, without images and without the layers that predict further tokens. Qwen 3.6
// and 3.8 have the shape of 3.5.
constexpr std::array kPresets{
    Preset{"qwen3.5-0.8b", 1024, 24, 8, 2, 256, 3584, 248320, 262144, 1e-6F, 1e7, true, small},
    Preset{"qwen3.5-27b", 5120, 64, 24, 4, 256, 17408, 248320, 262144, 1e-6F, 1e7, false, large},
    Preset{"qwen3.5-2b", 2048, 24, 8, 2, 256, 6144, 248320, 262144, 1e-6F, 1e7, true, small},
    Preset{"qwen3.5-4b", 2560, 32, 16, 4, 256, 9216, 248320, 262144, 1e-6F, 1e7, true, medium},
    Preset{"qwen3.5-9b", 4096, 32, 16, 4, 256, 12288, 248320, 262144, 1e-6F, 1e7, false, medium},
    Preset{"qwen3.6-27b", 5120, 64, 24, 4, 256, 17408, 248320, 262144, 1e-6F, 1e7, false, large},
    Preset{"qwen3.8-27b", 5120, 64, 24, 4, 256, 17408, 248320, 262144, 1e-6F, 1e7, false, large},
};

}  // namespace

const Family kQwen35{"qwen3_5_text", "Qwen3_5ForCausalLM",       stack, parse, describe_gated_delta,
                     kPresets,       "Qwen3.5, Qwen3.6, Qwen3.8"};

}  // namespace snug::models
