// Writes tensors from the executor's arenas to safetensors files, and reads them back to compare.
// No heap memory is used for data: writes go straight from the arena where the host reaches it
// (host_window.h), reading back passes through a slot of the program. Not to be called while
// a program runs.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "backends/trace.h"
#include "formats/checksums.h"
#include "formats/model_writer.h"
#include "runtime/executor.h"
#include "runtime/file_names.h"

namespace snug::runtime {

struct SavedTensor {
  std::string name;         // in the file
  backends::Buffer buffer;  // contiguous
};

// What a program writes, and what was done of it.
struct Saved {
  program::ProgramName program{};
  std::vector<SavedTensor> tensors;     // one for each operation
  std::vector<backends::Trace> traces;  // likewise
};
// Of a program of `write` operations.
Saved saved_by(program::ProgramName program, FileSet files, const Executor& executor);

// Performs a program that saves: writes FOLDER/STEM.safetensors, or shards with an index beyond
// max_shard_bytes, and gives the checksums of what was written. Notes what was done, and fails a
// CHECK where that is not what the program says. Throws UserError when the disk is full or cannot
// be written, and naming the first tensor that holds an infinity or no number: what could compute
// nothing is not worth a file. Nothing of the files is left then.
formats::TensorChecksums write_tensors(
    const std::filesystem::path& folder, const std::string& stem, Saved& saved, Executor& executor,
    int64_t max_shard_bytes = formats::ModelWriter::kDefaultShardBytes);

// Throws UserError naming the file and the tensor unless the files hold exactly these bytes.
void read_back(const std::filesystem::path& folder, const std::string& stem, const Saved& saved,
               Executor& executor);

}  // namespace snug::runtime
