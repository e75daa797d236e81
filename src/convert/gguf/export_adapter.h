// Writes a LoRA adapter alone as a GGUF file, which llama.cpp applies to a file of its model, with
// a Modelfile that has it on its model's folder. Its matrices are those of the adapter: B's rows in
// the order that the model's rows have in GGUF, and where modules have other scales than alpha / r,
// what is left of them multiplied into B.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "convert/folder/output_folder.h"
#include "convert/gguf/gguf_mix.h"
#include "convert/source/weight_source.h"

namespace snug::convert {

struct AdapterExportPlan : FolderCosts {
  std::string architecture;
  int64_t matrices = 0;  // of the model that have an adapter
  double alpha = 0;      // llama.cpp multiplies by alpha / r
  std::vector<std::string> files;
  std::vector<std::string> notes;  // about the Modelfile, in one sentence each
};

class AdapterExporter {
 public:
  // `base`: the model that the adapter was trained on; only its config and shapes are read. `mixes`
  // are f32, f16 or bf16. Throws UserError for what a file cannot express, saying that merging can:
  // DoRA, tables and modules that train whole, rows of tokens, and an adapter of a head that is the
  // embedding. `tokenizer`: the folder whose prompts and ends the Modelfile has; empty: the base's.
  AdapterExporter(const WeightSource& base, const std::filesystem::path& adapter,
                  std::span<const GgufMix> mixes, const std::string& name,
                  const std::filesystem::path& tokenizer = {});
  ~AdapterExporter();

  const AdapterExportPlan& plan() const;
  // Writes the folder, which must be empty or not exist; either all of it or nothing.
  FolderReport write(const std::filesystem::path& output) const;

 private:
  class Impl;
  std::unique_ptr<const Impl> impl_;
};

}  // namespace snug::convert
