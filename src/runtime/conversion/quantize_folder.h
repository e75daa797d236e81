// A model folder in 16 or 32 bits to one whose linears are NF4, as transformers and bitsandbytes
// save it: the same files and names, config.json with a quantization_config, the tokenizer's and
// other small files copied. Data streams through buffers of a fixed size, whatever the model's.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "runtime/saving/output_folder.h"

namespace snug::runtime {

struct FolderQuantizeOptions {
  bool double_quant = true;
  // What is stored in 32 or 64 bits is rounded to bf16 first, as transformers does that loads in
  // bf16; with this it stays, or becomes, fp32. 16-bit types always stay.
  bool keep_fp32 = false;
  bool head = false;  // the head is stored as NF4 too
};

struct FolderQuantizePlan : FolderCosts {
  int64_t linears = 0;
  int64_t linear_weights = 0;  // elements of them
  // transformers leaves linears of the family in 16 bits, and does not load the folder.
  bool for_snug_alone = false;
};

class FolderQuantizer {
 public:
  // Reads config.json and the headers. Throws UserError for what is no model folder or is quantised
  // already, and for tensors that are missing, of another shape than config.json says, or not the
  // model's; and for a head that is asked for and is the embedding.
  FolderQuantizer(const std::filesystem::path& folder, const FolderQuantizeOptions& options);
  ~FolderQuantizer();

  const FolderQuantizePlan& plan() const;
  // Writes the folder, which must not exist or be empty; all of it, or nothing. Two threads. Throws
  // UserError for that, for a disk that is too small and for a weight that is not finite.
  FolderReport write(const std::filesystem::path& output) const;

 private:
  class Impl;
  std::unique_ptr<const Impl> impl_;
};

}  // namespace snug::runtime
