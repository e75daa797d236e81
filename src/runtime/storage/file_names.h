// What files call the tensors of a job: the one place that says so. Weights have Hugging Face's
// names, adapters PEFT's, and what an optimizer keeps its own. A tensor and its f32 master are one
// in a model or an adapter.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "models/stored/expert_names.h"
#include "program/ir/tensor.h"

namespace snug::runtime {

// The files of a folder that belong together.
enum class FileSet : uint8_t { model, adapter, optimizer };

// What their names begin with: "model", as in model-00001-of-00004.safetensors.
std::string stem_of(FileSet files);
// The tensor's name there.
std::string name_in(FileSet files, std::string_view tensor);
// What they hold of it: one tensor of that name, or the matrices of experts that are stacked in
// memory. What an optimizer keeps of those is one tensor in files too. An adapter holds a module
// that transformers has renamed under each of its names, the own one first, since PEFT passes over
// a tensor whose name is another version's.
std::vector<models::FilePiece> pieces_in(FileSet files, const program::Tensor& tensor);
// The pieces that make the tensor: of one that an adapter holds, or may hold, under several names
// the first that is there; the own name where none is.
std::vector<models::FilePiece> pieces_to_read(
    FileSet files, const program::Tensor& tensor,
    const std::function<bool(const std::string&)>& is_there);
// Where a checkpoint holds a tensor that it puts back.
FileSet files_in_checkpoint(const program::Tensor& tensor);

}  // namespace snug::runtime
