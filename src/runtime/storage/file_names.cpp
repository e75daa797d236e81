#include "runtime/storage/file_names.h"

#include <algorithm>

#include "base/error.h"
#include "formats/adapter/peft_adapter.h"
#include "formats/adapter/renamed_modules.h"
#include "methods/lora_experts.h"
#include "models/forward/prompt_names.h"
#include "program/ir/tensor_names.h"

namespace snug::runtime {

std::string stem_of(FileSet files) {
  switch (files) {
    case FileSet::model:
      return "model";
    case FileSet::adapter:
      return "adapter_model";
    case FileSet::optimizer:
      return "optimizer";
  }
  SNUG_CHECK(false, "no set of files");
  return {};
}

std::string name_in(FileSet files, std::string_view tensor) {
  if (files == FileSet::optimizer) return std::string(tensor);
  std::string original = program::original_name(tensor);
  if (files == FileSet::model) return original;
  return formats::adapter_key(original);
}

std::vector<models::FilePiece> pieces_in(FileSet files, const program::Tensor& tensor) {
  std::string name = name_in(files, tensor.name);
  if (files == FileSet::model) return models::file_pieces(name, program::whole_shape(tensor));
  const program::Shape& shape = program::whole_shape(tensor);
  if (files == FileSet::optimizer) return {{std::move(name), shape, 0}};
  const std::string original = program::original_name(tensor.name);
  std::vector<models::FilePiece> copies;
  for (const std::string& known : formats::names_of(original))
    copies.push_back(
        {formats::adapter_key(known),
         methods::stored_lora_shape(original, models::stored_prompt_shape(original, shape)), 0});
  return copies;
}

std::vector<models::FilePiece> pieces_to_read(
    FileSet files, const program::Tensor& tensor,
    const std::function<bool(const std::string&)>& is_there) {
  std::vector<models::FilePiece> pieces = pieces_in(files, tensor);
  if (files != FileSet::adapter) return pieces;
  const auto held = std::ranges::find_if(
      pieces, [&](const models::FilePiece& piece) { return is_there(piece.name); });
  return {held == pieces.end() ? pieces.front() : *held};
}

FileSet files_in_checkpoint(const program::Tensor& tensor) {
  switch (tensor.role) {
    case program::Role::weight:
      return FileSet::model;
    case program::Role::adapter:
      return FileSet::adapter;
    default:
      return FileSet::optimizer;
  }
}

}  // namespace snug::runtime
