// How the matrices of experts are called in memory and in files.
//
// Files hold a matrix for each linear of each expert; in memory those of one kind of linear are one
// tensor (experts, out, in), in which gate and up of an expert follow each other, so that one
// product makes both. Its name tells what it holds, and in which order:
//
//   model.layers.3.mlp.experts.*.gate_proj+up_proj.weight   (experts, 2 * inner, hidden)
//   model.layers.3.mlp.experts.*.down_proj.weight           (experts, hidden, inner)
//
// For each expert in turn the matrices that the names give lie one after the other, as files have
// them: a stacked tensor is a sequence of whole tensors of the files, and no element is moved.
//
// Where files hold the matrices of all experts together, a tensor in memory is the one of the file,
// under its name:
//
//   model.layers.3.mlp.experts.gate_up_proj        (experts, hidden, 2 * inner), columns in turns
//   model.layers.3.mlp.experts.gate_up_proj_bias   (experts, 2 * inner)
//
// Pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/blocks.h"
#include "program/ir/tensor.h"

namespace snug::models {

// The name and shape within the layer, as those of a Linear.
std::string gate_up_name(const ExpertsBlock& experts);
program::Shape gate_up_shape(const ExpertsBlock& experts);
std::string down_name(const ExpertsBlock& experts);
program::Shape down_shape(const ExpertsBlock& experts);

// The name and shape of the experts' biases, where they have some.
std::string gate_up_bias_name(const ExpertsBlock& experts);
program::Shape gate_up_bias_shape(const ExpertsBlock& experts);
std::string down_bias_name(const ExpertsBlock& experts);
program::Shape down_bias_shape(const ExpertsBlock& experts);

// Whether this is the name of a stacked tensor.
bool is_stacked(std::string_view name);

// A tensor of a file that is a part of one in memory, whose elements it has from `first` on.
struct FilePiece {
  std::string name;
  program::Shape shape;
  int64_t first = 0;
};
// What files hold of a tensor of this name and (whole) shape, in the order of its elements: the
// matrices of a stacked one; of any other the tensor itself.
std::vector<FilePiece> file_pieces(std::string_view name, const program::Shape& shape);

}  // namespace snug::models
