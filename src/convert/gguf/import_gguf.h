// A GGUF file as a complete Hugging Face folder: weights in 16 or 32 bits, config.json, tokenizer
// and chat template. What the file holds quantised becomes the values that llama.cpp computes with.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "base/dtype.h"
#include "convert/folder/output_folder.h"
#include "convert/folder/write_folder.h"
#include "convert/source/gguf_weights.h"

namespace snug::convert {

struct GgufImportPlan : FolderCosts {
  int64_t tensors = 0;            // of the folder
  int64_t quantised_tensors = 0;  // of the file
  std::string main_type;          // of most values of the file: "q4_k"
  base::DType dtype = base::DType::bf16;
};

class GgufImporter {
 public:
  // Reads what stands before the data. `dtype`: of the folder; nothing: that of the file's floats,
  // or bf16 for a quantised file. Throws UserError as GgufWeights does.
  GgufImporter(const std::filesystem::path& file, std::optional<base::DType> dtype,
               int64_t max_shard_bytes = formats::ModelWriter::kDefaultShardBytes);

  const GgufImportPlan& plan() const { return plan_; }
  // What the folder's values are where the file is quantised, as a note to the user; empty where
  // they are those of the model.
  std::string note() const;
  // As write_folder. Throws UserError for a tokenizer that is not built, too.
  FolderReport write(const std::filesystem::path& output) const;

 private:
  GgufWeights weights_;
  WriteOptions options_;
  GgufImportPlan plan_;
};

}  // namespace snug::convert
