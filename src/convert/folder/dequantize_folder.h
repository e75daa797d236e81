// Converts a model folder whose experts are MXFP4, as gpt-oss is published, to bf16, as
// transformers saves it after loading it with Mxfp4Config(dequantize=True): the same files, with
// every stack of experts under its own name in place of blocks and scales, config.json without its
// quantization_config, and the tokenizer's and other small files copied. Values are exact. Data
// streams through buffers for one expert, whatever the model's size.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "convert/folder/output_folder.h"

namespace snug::convert {

struct FolderDequantizePlan : FolderCosts {
  int64_t stacks = 0;         // stacks of experts
  int64_t stack_weights = 0;  // elements in all stacks
};

class FolderDequantizer {
 public:
  // Reads config.json and the headers. Throws UserError for a folder that is not a model's or has
  // no MXFP4, and for tensors that are missing, have another shape than config.json says, or do not
  // belong to the model.
  explicit FolderDequantizer(const std::filesystem::path& folder);
  ~FolderDequantizer();

  const FolderDequantizePlan& plan() const;
  // Writes the folder, which must be empty or not exist; either all of it or nothing. Throws
  // UserError when it exists, when the disk is too small and for an expert that is not finite in
  // bf16.
  FolderReport write(const std::filesystem::path& output) const;

 private:
  class Impl;
  std::unique_ptr<const Impl> impl_;
};

}  // namespace snug::convert
