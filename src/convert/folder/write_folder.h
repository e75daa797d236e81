// Writes the weights of a source as a complete Hugging Face folder in 16 or 32 bits: the weights in
// files of a size that can be uploaded, config.json, and the small files that belong to the model.
// Streams rows of one tensor at a time through buffers that are known before anything is read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

#include "base/dtype.h"
#include "convert/folder/output_folder.h"
#include "convert/source/weight_source.h"
#include "formats/folder/model_writer.h"

namespace snug::convert {

struct WriteOptions {
  // The type of all weights of floats that the model has; nothing: each keeps its own.
  std::optional<base::DType> dtype{};
  int64_t max_shard_bytes = formats::ModelWriter::kDefaultShardBytes;
  // Folders whose tokenizer, chat template and other small files replace those of the source's
  // companions.
  std::vector<std::filesystem::path> companions{};
  // Adds further files to the folder, such as a model card, before it appears under its name.
  std::function<void(const std::filesystem::path& folder)> complete{};
};

// The type of most of the weights that are written, which config.json says.
base::DType written_type(const WeightSource& source, const WriteOptions& options);

// Reads no weights.
FolderCosts folder_costs(const WeightSource& source, const WriteOptions& options);

// `output` must be empty or not exist; it appears either whole or not at all. Uses two threads.
// Throws UserError when it exists, when the disk is too small, and for a number that the element
// type cannot hold.
FolderReport write_folder(const WeightSource& source, const WriteOptions& options,
                          const std::filesystem::path& output);

}  // namespace snug::convert
