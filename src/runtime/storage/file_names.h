// The names that files have for the tensors of a job; no other code knows them. Weights have
// Hugging Face's names, adapters PEFT's, and an optimizer's state has Snug's own. A tensor and its
// f32 master have one name in a model or an adapter.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "models/stored/expert_names.h"
#include "program/ir/tensor.h"

namespace snug::runtime {

// A set of files in a folder that belong together.
enum class FileSet : uint8_t { model, adapter, optimizer };

// The stem of the file names: "model", as in model-00001-of-00004.safetensors.
std::string stem_of(FileSet files);
// The tensor's name in these files.
std::string name_in(FileSet files, std::string_view tensor);
// How these files hold a tensor: as one tensor of that name, or as separate matrices of experts
// that are stacked in memory. An optimizer's state of stacked experts is one tensor in files too.
// An adapter holds a module that transformers has renamed under each of its names, the current one
// first, since PEFT ignores tensors with the name of another version.
std::vector<models::FilePiece> pieces_in(FileSet files, const program::Tensor& tensor);
// The pieces from which the tensor is read: of several possible names in an adapter, the first that
// is there; the current name where none is.
std::vector<models::FilePiece> pieces_to_read(
    FileSet files, const program::Tensor& tensor,
    const std::function<bool(const std::string&)>& is_there);
// The files of a checkpoint that hold a tensor that is restored.
FileSet files_in_checkpoint(const program::Tensor& tensor);

}  // namespace snug::runtime
