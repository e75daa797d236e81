// Names, shapes and initial values of a model's weights, as Hugging Face names and stores them.
#pragma once

#include <string>
#include <vector>

#include "models/config.h"
#include "program/tensor.h"

namespace snug::models {

enum class Initializer : uint8_t { normal, ones, zeros };

struct Weight {
  std::string name;  // "model.layers.0.self_attn.q_proj.weight"
  program::Shape shape;
  int32_t layer = -1;
  Initializer initializer = Initializer::normal;  // for init=random

  // A linear of a layer, which can be stored in 4 bits; embeddings, norms, biases and the head are
  // not.
  bool is_linear() const { return layer >= 0 && shape.rank() == 2; }
};

// All weights, in the order of the forward pass. Tied embeddings have no separate head.
std::vector<Weight> weights_of(const ModelConfig& config);

// Weights of no layer.
inline constexpr const char* kEmbeddingWeight = "model.embed_tokens.weight";
inline constexpr const char* kFinalNormWeight = "model.norm.weight";
inline constexpr const char* kHeadWeight = "lm_head.weight";

// Modules of a layer.
namespace modules {
inline constexpr const char* kAttentionNorm = "input_layernorm";
inline constexpr const char* kQuery = "self_attn.q_proj";
inline constexpr const char* kKey = "self_attn.k_proj";
inline constexpr const char* kValue = "self_attn.v_proj";
inline constexpr const char* kQueryKeyValue = "self_attn.qkv_proj";
inline constexpr const char* kQueryNorm = "self_attn.q_norm";
inline constexpr const char* kKeyNorm = "self_attn.k_norm";
inline constexpr const char* kAttentionOutput = "self_attn.o_proj";
inline constexpr const char* kMlpNorm = "post_attention_layernorm";
inline constexpr const char* kGate = "mlp.gate_proj";
inline constexpr const char* kUp = "mlp.up_proj";
inline constexpr const char* kGateUp = "mlp.gate_up_proj";
inline constexpr const char* kDown = "mlp.down_proj";
}  // namespace modules

// The name of the head's weight, which is the embedding's when tied.
std::string head_name(const ModelConfig& config);
// "model.layers.3.mlp.up_proj.weight", and that of its bias.
std::string layer_weight(int64_t layer, const char* module);
std::string layer_bias(int64_t layer, const char* module);

int64_t parameter_count(const ModelConfig& config);

// Tensors that files of this family may hold next to the weights and that are skipped on load.
bool is_ignorable(const std::string& name, const ModelConfig& config);

}  // namespace snug::models
