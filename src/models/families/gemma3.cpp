// The gemma3_text family (Gemma 3 of 270M and 1B, and the text part of 4B to 27B): Gemma 2's layers
// without soft caps of the scores, with norms of queries and keys, and with a window in five of six
// layers, which have other rotary frequencies.
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "models/config/rope.h"
#include "models/families/families.h"
#include "models/families/gemma_blocks.h"

namespace snug::models {
namespace {

using base::JsonObject;

constexpr double kLocalTheta = 1e4;

Stack stack(const ModelConfig& config) {
  return gemma_decoder(config, [&](int64_t layer) {
    AttentionBlock normed = scaled_attention(config, layer);
    normed.query_norm = gemma_norm(config, "self_attn.q_norm", config.head_dim);
    normed.key_norm = gemma_norm(config, "self_attn.k_norm", config.head_dim);
    return sandwich_layer(config, std::move(normed));
  });
}

ModelConfig parse(const JsonObject& json) {
  ModelConfig config = parse_gemma_shape(json, 131072, {.heads = 8, .vocab_size = 262208});
  auto [full, local] = parse_layer_ropes(json, 1e6, kLocalTheta);
  config.rope = std::move(full);
  config.local_rope = std::move(local);
  if (json.has("attn_logit_softcapping"))
    json.fail("attn_logit_softcapping", "is not null; this family's scores have no cap");
  config.logit_softcap = parse_softcap(json, "final_logit_softcapping", 0.0);
  const int64_t window = parse_window(json, 4096);
  if (window == 0) json.fail("sliding_window", "is null; this family has layers with a window");
  set_window_pattern(config, window, positive_or(json, "sliding_window_pattern", 6));
  if (json.has("layer_types")) config.windows = parse_layer_types(json, config.num_layers, window);
  return config;
}

void describe(const ModelConfig& config, nlohmann::json& json) {
  describe_gemma_shape(config, json);
  json["rope_local_base_freq"] = config.local_rope->theta;
}

void published(ModelConfig& config) {
  config.query_scalar = 256;
  config.local_rope.emplace().theta = kLocalTheta;
  set_window_pattern(config, 512, 6);
}

// The text part of the models that read images too.
void larger(ModelConfig& config) {
  published(config);
  set_window_pattern(config, 1024, 6);
  config.rope.scaling = RopeScaling::linear;
  config.rope.factor = 8.0;
}

void largest(ModelConfig& config) {
  larger(config);
  config.query_scalar = 168;
}

constexpr std::array kPresets{
    Preset{"gemma-3-12b-pt", 3840, 48, 16, 8, 256, 15360, 262208, 131072, 1e-6F, 1e6, true, larger},
    Preset{"gemma-3-1b-pt", 1152, 26, 4, 1, 256, 6912, 262144, 32768, 1e-6F, 1e6, true, published},
    Preset{"gemma-3-27b-pt", 5376, 62, 32, 16, 128, 21504, 262208, 131072, 1e-6F, 1e6, true,
           largest},
    Preset{"gemma-3-4b-pt", 2560, 34, 8, 4, 256, 10240, 262208, 131072, 1e-6F, 1e6, true, larger},
    Preset{"gemma-3-270m", 640, 18, 4, 1, 256, 2048, 262144, 32768, 1e-6F, 1e6, true, published},
};

}  // namespace

const Family kGemma3{"gemma3_text", "Gemma3ForCausalLM", stack, parse, describe, kPresets,
                     "Gemma 3"};

}  // namespace snug::models
