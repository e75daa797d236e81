// Writes tensors from the executor's arenas to safetensors files, and reads them back to compare;
// a folder with a job's result in one step, by one rank alone or by all ranks together with the
// bytes that one would write.
//
// No heap memory is used for data: writes go straight from the arena where the host reaches it
// (host_window.h), reading back passes through a slot of the program. Not to be called while
// a program runs.
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "backends/invocation.h"
#include "backends/trace.h"
#include "formats/folder/checksums.h"
#include "formats/folder/model_writer.h"
#include "runtime/execution/executor.h"
#include "runtime/storage/file_names.h"

namespace snug::runtime {

struct SavedTensor {
  std::string name;         // in the file
  backends::Buffer buffer;  // contiguous; what this rank writes of it, from element `first` on
  program::Shape shape;     // of it all
  size_t operation = 0;     // that writes it
  int64_t elements() const { return buffer.elements(); }
  bool is_all() const { return buffer.elements() == shape.elements(); }
};

// What a program writes, and what was done of it.
struct Saved {
  program::ProgramName program{};
  std::vector<SavedTensor> tensors;  // in the order of operations, of which one may write several
  std::vector<backends::Trace> traces;  // one for each operation: what files took of it
  std::vector<int64_t> asked;           // for each operation: bytes that are this rank's to write
  std::vector<int64_t> compared;        // for each operation: bytes that were read back
};
// Saves by a program of `write` operations. Where several ranks hold a replica's tensors, each
// writes its part of what is sharded or padded, and the first of them the others (tensor_part.h).
Saved saved_by(program::ProgramName program, FileSet files, const Executor& executor);

// Puts a piece of a tensor into a file, `first_byte` counted in what this rank writes of it, and
// returns how many bytes the file took.
using PutPiece = std::function<int64_t(const SavedTensor& tensor, const backends::Buffer& piece,
                                       int64_t first_byte)>;
// Looks at what is saved, piece by piece, and hands it to `put`. Notes what files took, and fails a
// CHECK where that is not what this rank's part asks for. Throws UserError naming the first tensor
// that holds an infinity or no number.
void save_pieces(Saved& saved, Executor& executor, const PutPiece& put);

// Performs a program that saves: writes FOLDER/STEM.safetensors, or shards with an index beyond
// max_shard_bytes, reads back what the program says, and gives the checksums of what was written.
// Notes what was done, and fails a CHECK where that is not what the program says. Throws UserError
// as read_back does, when the disk is full or cannot
// be written, and naming the first tensor that holds an infinity or no number: what could compute
// nothing is not worth a file. Nothing of the files is left then.
formats::TensorChecksums write_tensors(
    const std::filesystem::path& folder, const std::string& stem, Saved& saved, Executor& executor,
    int64_t max_shard_bytes = formats::ModelWriter::kDefaultShardBytes);

// What this rank has of `saved`, as tensors of one dimension in one file of its own,
// STEM.safetensors. All of several programs, with their checksums by tensor.
formats::TensorChecksums write_parts(const std::filesystem::path& folder, const std::string& stem,
                                     std::span<Saved* const> saved, Executor& executor);

// The files that write_tensors would write, by all ranks, which end together. Each reads back what
// it wrote. `folder`: the same for all.
void write_together(const std::filesystem::path& folder, const std::string& stem, Saved& saved,
                    Executor& executor, int64_t max_shard_bytes);

// Reads and compares what the operations that wrote it say is read back, and counts it. Throws
// UserError naming the file and the tensor unless the files hold exactly these bytes, where this
// rank wrote them. `is_flat`: in a file of its own (write_parts). A part of the above.
void read_back(const std::filesystem::path& folder, const std::string& stem, Saved& saved,
               Executor& executor, bool is_flat = false);

// Both fill a folder that exists.
struct FolderWriter {
  std::function<void(const std::filesystem::path&)> write_alone;   // all of it
  std::function<void(const std::filesystem::path&)> write_config;  // what is no tensor
};

// Writes `folder`, or replaces it, with what the program `save` writes. Throws on all ranks where
// one fails, and what was there stays.
void save_folder(const std::filesystem::path& folder, FileSet files, int64_t max_shard_bytes,
                 const FolderWriter& writer, Executor& executor);

}  // namespace snug::runtime
