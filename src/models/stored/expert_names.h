// The names of experts' matrices in memory and in files.
//
// Some files hold a matrix for each linear of each expert. In memory, one tensor (experts, out, in)
// holds the matrices of all experts; the gate and up matrices of an expert are adjacent, so that
// one product computes both. The tensor's name tells what it holds, and in which order:
//
//   model.layers.3.mlp.experts.*.gate_proj+up_proj.weight   (experts, 2 * inner, hidden)
//   model.layers.3.mlp.experts.*.down_proj.weight           (experts, hidden, inner)
//
// For each expert in turn, the tensor holds the named matrices one after the other, unchanged: a
// stacked tensor is a concatenation of whole tensors of the files.
//
// Other files hold the matrices of all experts in one tensor. The tensor in memory is then the same
// as in the file, with the same name:
//
//   model.layers.3.mlp.experts.gate_up_proj        (experts, hidden, 2 * inner), columns in turns
//   model.layers.3.mlp.experts.gate_up_proj_bias   (experts, 2 * inner)
//
// or, where rows of gate come before rows of up, that of a stacked tensor:
//
//   model.layers.3.block_sparse_moe.input_linear.weight    (experts, 2 * inner, hidden)
//
// The weights of norms that each head has for itself are one vector, those of head 0 first:
//
//   model.layers.3.self_attn.q_layernorm.norms.0..31.weight   (32 * width)
//
// Pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/blocks.h"
#include "program/ir/tensor.h"

namespace snug::models {

// The name of the weights of norms that each head has for itself.
std::string weight_of_heads(const std::string& module, int64_t heads);

// The tensor's name within the layer, and its shape.
std::string gate_up_name(const ExpertsBlock& experts);
program::Shape gate_up_shape(const ExpertsBlock& experts);
std::string down_name(const ExpertsBlock& experts);
program::Shape down_shape(const ExpertsBlock& experts);

// The name and shape of the experts' biases, if they have any.
std::string gate_up_bias_name(const ExpertsBlock& experts);
program::Shape gate_up_bias_shape(const ExpertsBlock& experts);
std::string down_bias_name(const ExpertsBlock& experts);
program::Shape down_bias_shape(const ExpertsBlock& experts);

// Whether this is the name of a stacked tensor.
bool is_stacked(std::string_view name);

// A tensor of a file that is a part of a tensor in memory, where its elements begin at `first`.
struct FilePiece {
  std::string name;
  program::Shape shape;
  int64_t first = 0;
};
// The tensors of the files that make up a tensor of this name and (whole) shape, in the order of
// its elements: the matrices of a stacked tensor, or the tensor itself.
std::vector<FilePiece> file_pieces(std::string_view name, const program::Shape& shape);

}  // namespace snug::models
