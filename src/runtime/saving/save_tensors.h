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
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backends/invocation.h"
#include "backends/trace.h"
#include "formats/folder/checksums.h"
#include "formats/folder/directory_transaction.h"
#include "formats/folder/model_writer.h"
#include "formats/folder/tensor_index.h"
#include "runtime/execution/executor.h"
#include "runtime/storage/file_names.h"

namespace snug::runtime {

struct SavedTensor {
  std::string name;         // the name in the file
  backends::Buffer buffer;  // contiguous; the part that this rank writes, from element `first` on
  program::Shape shape;     // the shape of the whole tensor
  size_t operation = 0;     // index of the operation that writes it
  int64_t elements() const { return buffer.elements(); }
  bool is_all() const { return buffer.elements() == shape.elements(); }
};

// The tensors that a program writes, and a record of what was done.
struct Saved {
  program::ProgramName program{};
  std::vector<SavedTensor> tensors;  // in the order of operations; one operation may write several
  std::vector<backends::Trace> traces;  // one per operation: what was written to files
  std::vector<int64_t> asked;           // per operation: bytes that this rank must write
  std::vector<int64_t> compared;        // per operation: bytes that were read back
  // Tensors that the program does not write, which are copied as they are from other files.
  std::shared_ptr<const formats::TensorIndex> others_in{};
  std::vector<const formats::IndexedTensor*> others{};
};
// The tensors that the program's `write` operations save. Where several ranks hold a replica's
// tensors, each writes its part of sharded or padded tensors, and the first rank writes all others
// (tensor_part.h).
Saved saved_by(program::ProgramName program, FileSet files, const Executor& executor);

// Writes a piece of a tensor to a file and returns how many bytes it wrote. `first_byte` is the
// offset of the piece within the part that this rank writes.
using PutPiece = std::function<int64_t(const SavedTensor& tensor, const backends::Buffer& piece,
                                       int64_t first_byte)>;
// Checks tensors piece by piece and hands the pieces to `put`. Records the bytes that were written,
// and fails a CHECK where they are not this rank's part. Throws a UserError that names the first
// tensor with an infinity or a NaN.
void save_pieces(Saved& saved, Executor& executor, const PutPiece& put);

// Performs a program that saves: writes FOLDER/STEM.safetensors, or shards with an index beyond
// max_shard_bytes; reads back what the program says; returns the checksums of what was written.
// Records what was done, and fails a CHECK where that differs from the program. Throws UserError as
// read_back does, when the disk is full or not writable, and for the first tensor with an infinity
// or a NaN, since such a file would be useless. No files are left then.
formats::TensorChecksums write_tensors(
    const std::filesystem::path& folder, const std::string& stem, Saved& saved, Executor& executor,
    int64_t max_shard_bytes = formats::ModelWriter::kDefaultShardBytes);

// Writes this rank's parts of `saved`, possibly from several programs, as one-dimensional tensors
// into one file of its own, STEM.safetensors. Returns their checksums by tensor.
formats::TensorChecksums write_parts(const std::filesystem::path& folder, const std::string& stem,
                                     std::span<Saved* const> saved, Executor& executor);

// Writes the same files as write_tensors, by all ranks, which finish together. Each rank reads back
// what it wrote. `folder` is the same for all.
void write_together(const std::filesystem::path& folder, const std::string& stem, Saved& saved,
                    Executor& executor, int64_t max_shard_bytes);

// Reads back and compares the tensors whose operations say so, and counts the bytes. Throws a
// UserError that names the file and the tensor unless the files hold exactly the bytes that this
// rank wrote. `is_flat`: the tensors are in a file of this rank's own (write_parts). The functions
// above call it.
void read_back(const std::filesystem::path& folder, const std::string& stem, Saved& saved,
               Executor& executor, bool is_flat = false);

// Both fill a folder that exists.
struct FolderWriter {
  std::function<void(const std::filesystem::path&)> write_alone;   // all of it
  std::function<void(const std::filesystem::path&)> write_config;  // what is no tensor
  // Names tensors as the folder has them, and adds others; may be empty.
  std::function<void(Saved&)> complete{};
  formats::DirectoryTransaction::Parent parent = formats::DirectoryTransaction::Parent::create;
};

// Writes `folder`, or replaces it, with what the program `save` writes. Throws on all ranks where
// one fails, and what was there stays.
void save_folder(const std::filesystem::path& folder, FileSet files, int64_t max_shard_bytes,
                 const FolderWriter& writer, Executor& executor);

}  // namespace snug::runtime
