// Names, shapes and initial values of a model's weights, with the names and layouts of Hugging
// Face's files.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/blocks.h"
#include "models/config/config.h"
#include "program/ir/tensor.h"

namespace snug::models {

struct Weight {
  std::string name;  // "model.layers.0.self_attn.q_proj.weight"
  program::Shape shape;
  int32_t layer = -1;
  // The value of all elements with init=random; nothing: they are drawn from a normal distribution.
  std::optional<float> initial;
  bool transposed = false;  // a linear of shape (in, out)
  // Parts of a mixture of experts, which are neither adapted nor quantised with the linears.
  bool is_router = false;
  bool is_expert = false;   // of all experts, or of one expert as in files
  bool in_16_bits = false;  // a linear that stays in 16 bits where others are stored in 4 bits
  bool is_before_layers = false;  // a linear that belongs to no layer, from which all layers read
  // A constant of the model in fp32, whatever the others are: it never trains.
  bool is_constant = false;

  // Whether this is a linear of a layer or before all layers, which can have an adapter.
  // Embeddings, norms, biases, the head, routers and the matrices of experts are not.
  bool is_linear() const {
    return (layer >= 0 || is_before_layers) && shape.rank() == 2 && !is_router && !is_expert;
  }
  // Whether it can be stored in 4 bits.
  bool is_quantised() const { return is_linear() && !in_16_bits; }
  // Whether it is the matrices of experts, one after the other, which can be stored in 4 bits too.
  bool is_of_matrices() const { return is_expert && shape.rank() == 3; }
  // The shape (out, in) in which a linear is stored in 4 bits.
  program::Shape shape_in_4_bits() const {
    return transposed ? program::Shape{shape[1], shape[0]} : shape;
  }
};

// All weights, in the order of the forward pass. With tied embeddings there is no separate head.
std::vector<Weight> weights_of(const Stack& stack);
std::vector<Weight> weights_of(const ModelConfig& config);

// All weights as files hold them: each matrix of each expert is a separate tensor (expert_names.h).
std::vector<Weight> file_weights_of(const Stack& stack);

// Weights and biases of norms, in the same order.
std::vector<std::string> norm_weights(const Stack& stack);

// The matrices, besides tables and the head, that stay in 16 bits where linears are stored in 4
// bits: routers, the biases of experts, and linears that a family always keeps in 16 bits.
std::vector<std::string> matrices_in_16_bits(const Stack& stack);

int64_t parameter_count(const ModelConfig& config);

// The name of the embedding's table, and the name that a separate head has or would have.
std::string embedding_weight(const Stack& stack);
std::string head_weight(const Stack& stack);

// Whether the tensor, which files may hold next to the weights, is skipped on load.
bool is_ignorable(const std::string& name, const Stack& stack);

// The last parts of the names of the modules that compute queries and values, for target_modules:
// "q_proj,v_proj".
std::string query_value_modules(const Stack& stack);

}  // namespace snug::models
