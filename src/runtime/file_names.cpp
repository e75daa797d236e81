#include "runtime/file_names.h"

#include "base/error.h"
#include "formats/peft_adapter.h"
#include "models/prompt_names.h"
#include "program/tensor_names.h"

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
  if (files == FileSet::adapter)
    return {{name, models::stored_prompt_shape(program::original_name(tensor.name), shape), 0}};
  return {{std::move(name), shape, 0}};
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
