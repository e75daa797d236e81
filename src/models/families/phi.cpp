// The phi family (Phi-1, Phi-1.5, Phi-2): attention and a plain mlp in parallel after one layer
// norm; biases on all linears, the head included; a part of each head is rotated.
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "models/config/config_keys.h"
#include "models/config/rope.h"
#include "models/families/families.h"
#include "models/families/llama_blocks.h"

namespace snug::models {
namespace {

using base::JsonObject;

Layer layer_of(const ModelConfig& config, int64_t layer) {
  AttentionBlock biased = attention(config, layer, {.query_key_value = true, .output = true});
  biased.output.module = "self_attn.dense";
  const Norm shared = layer_norm(config, "input_layernorm");
  return {
      .branches = {{.norm_before = shared, .block = std::move(biased), .norm_after = {}},
                   {.norm_before = shared,
                    .block = plain_mlp(config, {"mlp.fc1", "mlp.fc2"}, Activation::gelu_tanh, true),
                    .norm_after = {}}},
      .parallel = true};
}

Stack stack(const ModelConfig& config) {
  Stack stack = decoder(config, [&](int64_t layer) { return layer_of(config, layer); });
  stack.final_norm = layer_norm(config, "model.final_layernorm");
  stack.head_bias = true;
  return stack;
}

ModelConfig parse(const JsonObject& json) {
  ModelConfig config = parse_shape(json, {.norm_epsilon = 1e-5,
                                          .norm_epsilon_key = "layer_norm_eps",
                                          .activations = {"gelu_new", "gelu_pytorch_tanh"},
                                          .dropout_keys = {"resid_pdrop", "embd_pdrop"}});
  config.partial_rotary_factor = parse_partial_rotary(json, config.head_dim, 0.5);
  config.rope = parse_rope(json, {.partial = true});
  if (json.boolean_or("qk_layernorm", false))
    json.fail("qk_layernorm", "is true, which is not built for phi");
  return config;
}

void describe(const ModelConfig& config, nlohmann::json& json) {
  json["layer_norm_eps"] = json["rms_norm_eps"];
  json.erase("rms_norm_eps");
  json["hidden_act"] = "gelu_new";
  json["partial_rotary_factor"] = config.partial_rotary_factor;
  json["qk_layernorm"] = false;
  json["embd_pdrop"] = 0.0;
  json["resid_pdrop"] = config.dropout;
}

template <int kRotated>  // rotated elements of a head
void rotates(ModelConfig& config) {
  config.partial_rotary_factor = kRotated / static_cast<double>(config.head_dim);
}

constexpr std::array kPresets{
    Preset{"phi-1", 2048, 24, 32, 32, 64, 8192, 51200, 2048, 1e-5F, 1e4, false, rotates<32>},
    Preset{"phi-1_5", 2048, 24, 32, 32, 64, 8192, 51200, 2048, 1e-5F, 1e4, false, rotates<32>},
    Preset{"phi-2", 2560, 32, 32, 32, 80, 10240, 51200, 2048, 1e-5F, 1e4, false, rotates<32>},
};

}  // namespace

const Family kPhi{"phi",    "PhiForCausalLM",       stack, parse, describe,
                  kPresets, "Phi-1, Phi-1.5, Phi-2"};

}  // namespace snug::models
