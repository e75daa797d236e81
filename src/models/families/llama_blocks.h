// Blocks with llama's structure and module names, which many families share. A family's file uses
// them unchanged or modifies them.
#pragma once

#include <string>

#include "models/blocks.h"
#include "models/config/config.h"

namespace snug::models {

// An RMS norm of the residual stream.
Norm rms_norm(const ModelConfig& config, std::string module);
// An RMS norm over `width` elements.
Norm rms_norm(const ModelConfig& config, std::string module, int64_t width);

// A layer norm of the residual stream, with a bias.
Norm layer_norm(const ModelConfig& config, std::string module);

// self_attn.{q,k,v,o}_proj with grouped heads, scores scaled by 1 / sqrt(head_dim), and the
// config's window for this layer.
struct AttentionBiases {
  bool query_key_value = false;
  bool output = false;
};
AttentionBlock attention(const ModelConfig& config, int64_t layer, AttentionBiases biases = {});

// mlp.{gate,up,down}_proj.
GatedMlp gated_mlp(const ModelConfig& config, bool bias = false);

// MODULE.{gate,up,down}_proj, `inner` wide.
GatedMlp gated_mlp(const ModelConfig& config, const std::string& module, int64_t inner,
                   bool bias = false);

// The router mlp.gate and the experts mlp.experts.N.{gate,up,down}_proj, of the config's sizes. All
// experts are in mlp.experts.gate_up_proj and mlp.experts.down_proj where the config says so.
ExpertsBlock gated_experts(const ModelConfig& config);
// The same with a shared expert, mlp.shared_expert, whose output mlp.shared_expert_gate scales.
ExpertsBlock experts_beside_shared(const ModelConfig& config);

// An mlp without a gate.
struct MlpNames {
  const char* up;
  const char* down;
};
Mlp plain_mlp(const ModelConfig& config, const MlpNames& names, Activation activation, bool bias);

// Branches with a norm before each block: input_layernorm before attention,
// post_attention_layernorm before the mlp.
Layer pre_norm_layer(const ModelConfig& config, AttentionBlock attention, Block mlp);

// Branches with a norm after each block instead: post_attention_layernorm after attention,
// post_feedforward_layernorm after the mlp.
Layer post_norm_layer(const ModelConfig& config, AttentionBlock attention, Block mlp);

// A decoder with model.embed_tokens, model.norm and lm_head, but no layers.
Stack decoder_without_layers(const ModelConfig& config);

// A decoder with the config's number of layers, each made by `layer(index)`.
Stack decoder(const ModelConfig& config, const auto& layer) {
  Stack stack = decoder_without_layers(config);
  for (int64_t index = 0; index < config.num_layers; ++index) stack.layers.push_back(layer(index));
  return stack;
}

}  // namespace snug::models
