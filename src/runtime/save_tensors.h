// Writes tensors from the executor's arenas to safetensors files, and reads them back to compare.
// No heap memory is used for data: writes go straight from the arena where the host reaches it
// (host_window.h), reading back passes through a slot of the program `load`. Not to be called while
// a program runs.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "backends/backend.h"
#include "formats/checksums.h"
#include "formats/model_writer.h"
#include "runtime/executor.h"

namespace snug::runtime {

struct SavedTensor {
  std::string name;         // in the file
  backends::Buffer buffer;  // contiguous
};

// Writes FOLDER/STEM.safetensors, or shards with an index beyond max_shard_bytes, and gives the
// checksums of what was written. Throws UserError when the disk is full or cannot be written, and
// naming the first tensor that holds an infinity or no number: what could compute nothing is not
// worth a file. Nothing of the files is left then.
formats::TensorChecksums write_tensors(
    const std::filesystem::path& folder, const std::string& stem,
    std::span<const SavedTensor> tensors, Executor& executor,
    int64_t max_shard_bytes = formats::ModelWriter::kDefaultShardBytes);

// Throws UserError naming the file and the tensor unless the files hold exactly these bytes.
void read_back(const std::filesystem::path& folder, const std::string& stem,
               std::span<const SavedTensor> tensors, Executor& executor);

}  // namespace snug::runtime
