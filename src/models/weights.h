// Names, shapes and initial values of a model's weights, as Hugging Face names and stores them.
#pragma once

#include <string>
#include <vector>

#include "models/blocks.h"
#include "models/config/config.h"
#include "program/ir/tensor.h"

namespace snug::models {

enum class Initializer : uint8_t { normal, ones, zeros };

struct Weight {
  std::string name;  // "model.layers.0.self_attn.q_proj.weight"
  program::Shape shape;
  int32_t layer = -1;
  Initializer initializer = Initializer::normal;  // for init=random
  bool transposed = false;                        // a linear's, of shape (in, out)
  // Parts of a mixture of experts, which stay as they are where linears are adapted or quantised.
  bool is_router = false;
  bool is_expert = false;   // of all experts, or of one, as files have it
  bool in_16_bits = false;  // a linear that is not stored in 4

  // A linear of a layer, which can have an adapter; embeddings, norms, biases, the head, routers
  // and what experts have are not.
  bool is_linear() const { return layer >= 0 && shape.rank() == 2 && !is_router && !is_expert; }
  // Whether it can be stored in 4 bits.
  bool is_quantised() const { return is_linear() && !in_16_bits; }
  // (out, in) of a linear: what it is stored as in 4 bits.
  program::Shape shape_in_4_bits() const {
    return transposed ? program::Shape{shape[1], shape[0]} : shape;
  }
};

// All weights, in the order of the forward pass. Tied embeddings have no separate head.
std::vector<Weight> weights_of(const Stack& stack);
std::vector<Weight> weights_of(const ModelConfig& config);

// All weights as files hold them: each matrix of an expert is a tensor of its own (expert_names.h).
std::vector<Weight> file_weights_of(const Stack& stack);

// Weights and biases of norms, in the same order.
std::vector<std::string> norm_weights(const Stack& stack);

// The matrices of layers that stay in 16 bits where linears are stored in 4: routers, the biases of
// experts, and linears that a family keeps so.
std::vector<std::string> matrices_in_16_bits(const Stack& stack);

int64_t parameter_count(const ModelConfig& config);

// The table of the embedding, and what a head of its own is stored as, be there one or not.
std::string embedding_weight(const Stack& stack);
std::string head_weight(const Stack& stack);

// Tensors that files may hold next to the weights and that are skipped on load.
bool is_ignorable(const std::string& name, const Stack& stack);

// The modules that make queries and values, by the last parts of their names, for target_modules:
// "q_proj,v_proj".
std::string query_value_modules(const Stack& stack);

}  // namespace snug::models
