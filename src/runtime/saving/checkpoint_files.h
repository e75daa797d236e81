// The files of a checkpoint that hold tensors, as the program `restore` reads them: those of one
// rank, which are a model or an adapter and the optimizer's state, or the files of several with
// their manifest. Any number of ranks reads either: each the ranges that it holds.
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
  // Throws UserError when the checkpoint is of another method. What is referred to must outlive it.
  CheckpointFiles(const std::filesystem::path& folder, const formats::FolderChecksums& checksums,
                  Executor& executor);

  // Throws UserError when there is no such tensor, or it is another one there.
  std::vector<FilePart> find(const program::Tensor& tensor) const;
  // The state as the files hold it must be what this job computes with.
  void check(const TensorRead& tensor_read) const;
  // Reads and verifies these; tensors that the job does not put back are verified alone, each by
  // one rank of a replica. Throws base::DamagedFile where bytes are not those that were written.
  ReadReport read(std::span<const TensorRead> restored) const;

 private:
  std::vector<FilePart> find_parts(const models::FilePiece& piece) const;
  void check_names() const;
  const formats::TensorIndex& index_of(const formats::IndexedTensor& tensor) const;
  std::vector<TensorRead> verified(size_t index, std::span<const TensorRead> restored) const;

  std::filesystem::path folder_;
  const formats::FolderChecksums& checksums_;
  Executor& executor_;
  std::optional<formats::Manifest> manifest_;  // of several ranks
  std::vector<formats::TensorIndex> indexes_;  // of one rank: the result's, the optimizer's
};

}  // namespace snug::runtime
