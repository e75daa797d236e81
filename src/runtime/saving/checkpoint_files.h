// The files of a checkpoint that hold tensors, as the program `restore` reads them. A single rank
// has written a model or an adapter and the optimizer's state; several ranks have written their own
// files and a manifest. Any number of ranks can read either form: each rank reads the ranges that
// it holds.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "formats/folder/checksums.h"
#include "formats/folder/manifest.h"
#include "formats/folder/tensor_index.h"
#include "runtime/execution/executor.h"
#include "runtime/storage/file_names.h"
#include "runtime/storage/perform.h"

namespace snug::runtime {

// Whether a job's result is a model or an adapter.
FileSet result_of(const Executor& executor);

class CheckpointFiles {
 public:
  // Throws UserError when another method made the checkpoint. The arguments must outlive the
  // object.
  CheckpointFiles(const std::filesystem::path& folder, const formats::FolderChecksums& checksums,
                  Executor& executor);

  // Throws UserError when the checkpoint does not have the tensor, or has another shape for it.
  std::vector<FilePart> find(const program::Tensor& tensor) const;
  // Checks that a tensor in the files has the shape and type that this job computes with.
  void check(const TensorRead& tensor_read) const;
  // Reads and verifies these tensors. Tensors of the files that the job does not restore are only
  // verified, each by one rank of a replica. Throws base::DamagedFile where bytes are not as they
  // were written.
  ReadReport read(std::span<const TensorRead> restored) const;

 private:
  std::vector<FilePart> find_parts(const models::FilePiece& piece) const;
  void check_names() const;
  const formats::TensorIndex& index_of(const formats::IndexedTensor& tensor) const;
  std::vector<TensorRead> verified(size_t index, std::span<const TensorRead> restored) const;

  std::filesystem::path folder_;
  const formats::FolderChecksums& checksums_;
  Executor& executor_;
  std::optional<formats::Manifest> manifest_;  // only for a checkpoint that several ranks wrote
  std::vector<formats::TensorIndex> indexes_;  // of one rank's checkpoint: the index of the result,
                                               // then that of the optimizer's state
};

}  // namespace snug::runtime
