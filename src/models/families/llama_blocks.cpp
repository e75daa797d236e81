#include "models/families/llama_blocks.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace snug::models {

Norm rms_norm(const ModelConfig& config, std::string module) {
  return rms_norm(config, std::move(module), config.hidden_size);
}

Norm rms_norm(const ModelConfig& config, std::string module, int64_t width) {
  return {std::move(module), width, config.norm_epsilon};
}

Norm layer_norm(const ModelConfig& config, std::string module) {
  return {std::move(module), config.hidden_size, config.norm_epsilon, NormForm::layer, true};
}

AttentionBlock attention(const ModelConfig& config, int64_t layer, AttentionBiases biases) {
  const int64_t hidden = config.hidden_size;
  const int64_t queries = config.num_heads * config.head_dim;
  const int64_t keys = config.num_kv_heads * config.head_dim;
  const bool bias = biases.query_key_value;
  AttentionBlock block;
  block.heads = config.num_heads;
  block.kv_heads = config.num_kv_heads;
  block.head_dim = config.head_dim;
  block.query_key_value.parts = {{"self_attn.q_proj", queries, hidden, bias},
                                 {"self_attn.k_proj", keys, hidden, bias},
                                 {"self_attn.v_proj", keys, hidden, bias}};
  block.scale = static_cast<float>(config.attention_scale > 0
                                       ? config.attention_scale
                                       : 1.0 / std::sqrt(static_cast<double>(config.head_dim)));
  block.window = config.window_of(layer);
  block.rotated = config.positions == Positions::rotary &&
                  !std::ranges::binary_search(config.unrotated_layers, layer);
  block.local_rotary = config.local_rope && block.window > 0;
  block.output = {"self_attn.o_proj", hidden, queries, biases.output};
  return block;
}

GatedMlp gated_mlp(const ModelConfig& config, bool bias) {
  return gated_mlp(config, "mlp", config.intermediate_size, bias);
}

GatedMlp gated_mlp(const ModelConfig& config, const std::string& module, int64_t inner, bool bias) {
  const int64_t hidden = config.hidden_size;
  GatedMlp mlp;
  mlp.gate_up.parts = {{module + ".gate_proj", inner, hidden, bias},
                       {module + ".up_proj", inner, hidden, bias}};
  mlp.down = {module + ".down_proj", hidden, inner, bias};
  return mlp;
}

ExpertsBlock gated_experts(const ModelConfig& config) {
  const bool in_one = config.experts_in_one;
  return {.router = {"mlp.gate", config.num_experts, config.hidden_size},
          .experts = config.num_experts,
          .chosen = config.chosen_experts,
          .normalize = config.normalize_experts,
          .module = "mlp.experts",
          .gate = in_one ? "gate_up_proj" : "gate_proj",
          .up = in_one ? "" : "up_proj",
          .down = "down_proj",
          .inner = config.expert_size,
          .files = in_one ? ExpertFiles::stacked : ExpertFiles::each};
}

ExpertsBlock experts_beside_shared(const ModelConfig& config) {
  ExpertsBlock experts = gated_experts(config);
  experts.shared = {
      .mlp = gated_mlp(config, "mlp.shared_expert", config.shared_expert_size),
      .gate = Linear{.module = "mlp.shared_expert_gate", .out = 1, .in = config.hidden_size}};
  return experts;
}

Mlp plain_mlp(const ModelConfig& config, const MlpNames& names, Activation activation, bool bias) {
  const int64_t hidden = config.hidden_size;
  const int64_t inner = config.intermediate_size;
  return {{names.up, inner, hidden, bias}, activation, {names.down, hidden, inner, bias}};
}

Layer pre_norm_layer(const ModelConfig& config, AttentionBlock attention, Block mlp) {
  const auto scale = static_cast<float>(config.residual_scale);
  return {{{rms_norm(config, "input_layernorm"), std::move(attention), {}, scale},
           {rms_norm(config, "post_attention_layernorm"), std::move(mlp), {}, scale}}};
}

Layer post_norm_layer(const ModelConfig& config, AttentionBlock attention, Block mlp) {
  return {{{{}, std::move(attention), rms_norm(config, "post_attention_layernorm")},
           {{}, std::move(mlp), rms_norm(config, "post_feedforward_layernorm")}}};
}

Stack decoder_without_layers(const ModelConfig& config) {
  Stack stack;
  stack.hidden_size = config.hidden_size;
  stack.vocab_size = config.vocab_size;
  stack.embedding = "model.embed_tokens";
  stack.embedding_scale = config.embedding_scale;
  stack.prefix = "model.layers";
  stack.final_norm = rms_norm(config, "model.norm");
  stack.head = "lm_head";
  stack.head_scale = config.logit_scale;
  stack.tied_head = config.tied_embeddings;
  stack.rotary = {config.rotary_width(), config.rope};
  if (config.local_rope) stack.local_rotary = {config.rotary_width(), *config.local_rope};
  return stack;
}

}  // namespace snug::models
