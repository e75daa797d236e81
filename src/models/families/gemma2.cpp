// The gemma2 family (Gemma 2): gemma's norms, activation and scaled embeddings with a norm before
// and after each block, soft caps of scores and logits, a scale of the scores from config.json, and
// a sliding window in every other layer.
#include <array>
#include <nlohmann/json.hpp>

#include "models/config/rope.h"
#include "models/families/families.h"
#include "models/families/gemma_blocks.h"

namespace snug::models {
namespace {

using base::JsonObject;

constexpr int64_t kWindow = 4096;

// By default layers 0, 2, 4, ... have the sliding window.
constexpr int64_t kPattern = 2;

Stack stack(const ModelConfig& config) {
  return gemma_decoder(config, [&](int64_t layer) {
    return sandwich_layer(config, scaled_attention(config, layer));
  });
}

ModelConfig parse(const JsonObject& json) {
  ModelConfig config = parse_gemma_shape(json, 8192);
  config.rope = parse_rope(json);
  config.attention_softcap = parse_softcap(json, "attn_logit_softcapping", 50.0);
  config.logit_softcap = parse_softcap(json, "final_logit_softcapping", 30.0);
  const int64_t window = parse_window(json, kWindow);
  set_window_pattern(config, window, kPattern);
  if (json.has("layer_types")) config.windows = parse_layer_types(json, config.num_layers, window);
  return config;
}

template <int kQueryScalar>
void published(ModelConfig& config) {
  config.query_scalar = kQueryScalar;
  config.attention_softcap = 50.0F;
  config.logit_softcap = 30.0F;
  set_window_pattern(config, kWindow, kPattern);
}

constexpr std::array kPresets{
    Preset{"gemma-2-27b", 4608, 46, 32, 16, 128, 36864, 256000, 8192, 1e-6F, 1e4, true,
           published<144>},
    Preset{"gemma-2-2b", 2304, 26, 8, 4, 256, 9216, 256000, 8192, 1e-6F, 1e4, true, published<256>},
    Preset{"gemma-2-9b", 3584, 42, 16, 8, 256, 14336, 256000, 8192, 1e-6F, 1e4, true,
           published<256>},
};

}  // namespace

const Family kGemma2{"gemma2", "Gemma2ForCausalLM", stack, parse, describe_gemma_shape, kPresets,
                     "Gemma 2"};

}  // namespace snug::models
