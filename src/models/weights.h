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

// The name of the head's weight: "lm_head.weight", or the embedding's when tied.
std::string head_name(const ModelConfig& config);
std::string layer_weight(int64_t layer, const char* module);  // "model.layers.3.mlp.up_proj.weight"

int64_t parameter_count(const ModelConfig& config);

// Tensors that files of this family may hold beside the weights and that are skipped on load.
bool is_ignorable(const std::string& name, const ModelConfig& config);

}  // namespace snug::models
