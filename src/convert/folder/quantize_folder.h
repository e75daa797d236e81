// Quantises the linears of a model folder in 16 or 32 bits to NF4, as transformers and bitsandbytes
// save it: the same files and names, config.json with a quantization_config, and the tokenizer's
// and other small files copied. Data streams through buffers of a fixed size, whatever the model's
// size.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "convert/folder/output_folder.h"

namespace snug::convert {

struct FolderQuantizeOptions {
  bool double_quant = true;
  // By default, values stored in 32 or 64 bits are rounded to bf16 first, as transformers does when
  // it loads in bf16; with this they stay, or become, fp32. 16-bit types always stay.
  bool keep_fp32 = false;
  bool head = false;  // the head is stored as NF4 too
};

struct FolderQuantizePlan : FolderCosts {
  int64_t linears = 0;
  int64_t linear_weights = 0;  // elements in all quantised linears
  // transformers keeps some of these linears in 16 bits for this family, and so cannot load the
  // folder.
  bool for_snug_alone = false;
};

class FolderQuantizer {
 public:
  // Reads config.json and the headers. Throws UserError for a folder that is not a model's or is
  // already quantised; for tensors that are missing, have another shape than config.json says, or
  // do not belong to the model; and when the head is to be quantised but is tied to the embedding.
  FolderQuantizer(const std::filesystem::path& folder, const FolderQuantizeOptions& options);
  ~FolderQuantizer();

  const FolderQuantizePlan& plan() const;
  // Writes the folder, which must be empty or not exist; either all of it or nothing. Uses two
  // threads. Throws UserError when it exists, when the disk is too small and for a weight that is
  // not finite.
  FolderReport write(const std::filesystem::path& output) const;

 private:
  class Impl;
  std::unique_ptr<const Impl> impl_;
};

}  // namespace snug::convert
