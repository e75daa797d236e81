// Converts a model folder to bf16 whose experts are MXFP4, as gpt-oss is published, or whose
// linears are FP8, as Ministral 3 is. The result is what transformers saves after loading the
// folder with Mxfp4Config(dequantize=True) or FineGrainedFP8Config(dequantize=True): the same
// files, with every stack of experts or linear under its own name in place of codes and scales,
// config.json without its quantization_config, and the tokenizer's and other small files copied.
// Values of MXFP4 are exact, and those of FP8 the products with their scales, rounded once. Data
// streams through buffers for one expert or some rows, whatever the model's size.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "convert/folder/output_folder.h"

namespace snug::convert {

struct FolderDequantizePlan : FolderCosts {
  int64_t stacks = 0;         // stacks of experts
  int64_t stack_weights = 0;  // elements in all stacks
  int64_t linears = 0;        // linears in FP8
  int64_t linear_weights = 0;
};

class FolderDequantizer {
 public:
  // Reads config.json and the headers. Throws UserError for a folder that is not a model's or has
  // neither MXFP4 nor FP8. With MXFP4 also for tensors that are missing, have another shape than
  // config.json says, or do not belong to the model; a folder in FP8 may be of any model.
  explicit FolderDequantizer(const std::filesystem::path& folder);
  ~FolderDequantizer();

  const FolderDequantizePlan& plan() const;
  // Writes the folder, which must be empty or not exist; either all of it or nothing. Throws
  // UserError when it exists, when the disk is too small and for an expert or a linear that is not
  // finite in bf16.
  FolderReport write(const std::filesystem::path& output) const;

 private:
  class Impl;
  std::unique_ptr<const Impl> impl_;
};

}  // namespace snug::convert
