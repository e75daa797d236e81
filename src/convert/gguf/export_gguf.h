// Writes a model as GGUF files, one for each kind asked for, in one pass over its weights: pieces
// of 1 MiB are read and quantised by two threads in buffers that are planned before anything is
// read, whatever the model's size. Next to them is a Modelfile for Ollama.
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

struct GgufExportPlan : FolderCosts {
  std::string architecture;
  int64_t tensors = 0;
  std::vector<std::string> files;        // names, one for each kind
  std::vector<std::string> differences;  // models/gguf/architecture.h
};

class GgufExporter {
 public:
  // `name` begins the names of the files and is the name of the model. `tokenizer`: the folder
  // whose tokenizer and chat template it has; empty: the source's own. Throws UserError for a model
  // that llama.cpp does not run, and for a kind that does not suit it. `source` must outlive the
  // object.
  GgufExporter(const WeightSource& source, std::span<const GgufMix> mixes, const std::string& name,
               const std::filesystem::path& tokenizer = {});
  ~GgufExporter();

  const GgufExportPlan& plan() const;
  // Writes the folder, which must be empty or not exist; either all of it or nothing. Throws
  // UserError when it exists, when the disk is too small, and for a value that a kind cannot hold.
  FolderReport write(const std::filesystem::path& output) const;

 private:
  class Impl;
  std::unique_ptr<const Impl> impl_;
};

}  // namespace snug::convert
