// The cohere2 family (Command R7B, Command A, Aya): attention and mlp side by side on one layer
// norm without a bias; layers with a sliding window rotate neighbouring elements of a head
// together, the others see everything and are not rotated; the logits are scaled.
#include <array>
#include <nlohmann/json.hpp>

#include "models/config/config_keys.h"
#include "models/config/rope.h"
#include "models/families/families.h"
#include "models/families/llama_blocks.h"

namespace snug::models {
namespace {

using base::JsonObject;

Norm bare_layer_norm(const ModelConfig& config, const char* module) {
  return {module, config.hidden_size, config.norm_epsilon, NormForm::layer};
}

Layer layer_of(const ModelConfig& config, int64_t layer) {
  const bool bias = config.attention_bias;
  const Norm shared = bare_layer_norm(config, "input_layernorm");
  return {.branches = {{.norm_before = shared,
                        .block = attention(config, layer, {bias, bias}),
                        .norm_after = {}},
                       {.norm_before = shared, .block = gated_mlp(config), .norm_after = {}}},
          .parallel = true};
}

Stack stack(const ModelConfig& config) {
  Stack stack = decoder(config, [&](int64_t layer) { return layer_of(config, layer); });
  stack.final_norm = bare_layer_norm(config, "model.norm");
  stack.rotary.interleaved = true;
  return stack;
}

ModelConfig parse(const JsonObject& json) {
  ModelConfig config = parse_shape(json, {.max_position = 8192,
                                          .norm_epsilon = 1e-5,
                                          .tied_embeddings = true,
                                          .norm_epsilon_key = "layer_norm_eps"});
  if (config.head_dim * config.num_heads != config.hidden_size)
    json.fail("head_dim", "is not hidden_size / num_attention_heads, as cohere2 has it");
  config.rope = parse_rope(json);
  config.attention_bias = json.boolean_or("attention_bias", false);
  config.logit_scale = parse_scale(json, "logit_scale", 0.0625);
  const int64_t window = parse_window(json, 4096);
  if (window == 0) json.fail("sliding_window", "is null; this family has layers with a window");
  set_window_pattern(config, window, positive_or(json, "sliding_window_pattern", 4));
  if (json.has("layer_types")) config.windows = parse_layer_types(json, config.num_layers, window);
  leave_full_layers_unrotated(config);
  return config;
}

void describe(const ModelConfig& config, nlohmann::json& json) {
  rename_key(json, "rms_norm_eps", "layer_norm_eps");
  json["attention_bias"] = config.attention_bias;
  json["logit_scale"] = config.logit_scale;
  describe_window(config, json);
  describe_layer_types(config, json);
}

void published(ModelConfig& config) {
  config.logit_scale = 0.25;
  set_window_pattern(config, 4096, 4);
  leave_full_layers_unrotated(config);
}

constexpr std::array kPresets{
    Preset{"command-r7b-12-2024", 4096, 32, 32, 8, 128, 14336, 256000, 132096, 1e-5F, 5e4, true,
           published},
};

}  // namespace

const Family kCohere2{"cohere2", "Cohere2ForCausalLM",    stack, parse, describe,
                      kPresets,  "Command R7B, Command A"};

}  // namespace snug::models
