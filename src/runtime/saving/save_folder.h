// Writes a folder with a job's result atomically: by a single rank, or by all ranks together, with
// the same bytes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

#include "runtime/execution/executor.h"
#include "runtime/storage/file_names.h"

namespace snug::runtime {

// Both functions fill an existing folder.
struct FolderWriter {
  std::function<void(const std::filesystem::path&)> write_alone;   // writes everything
  std::function<void(const std::filesystem::path&)> write_config;  // writes all but the tensors
};

// Writes or replaces `folder`. If one rank fails it throws on all ranks, and the old folder stays.
void save_folder(const std::filesystem::path& folder, FileSet files, int64_t max_shard_bytes,
                 const FolderWriter& writer, Executor& executor);

}  // namespace snug::runtime
