// A folder with a job's result, in one step: by one rank alone, or written by all ranks together
// with the bytes that one would write.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

#include "runtime/execution/executor.h"
#include "runtime/storage/file_names.h"

namespace snug::runtime {

// Both fill a folder that exists.
struct FolderWriter {
  std::function<void(const std::filesystem::path&)> write_alone;   // all of it
  std::function<void(const std::filesystem::path&)> write_config;  // what is no tensor
};

// Writes `folder`, or replaces it. Throws on all ranks where one fails, and what was there stays.
void save_folder(const std::filesystem::path& folder, FileSet files, int64_t max_shard_bytes,
                 const FolderWriter& writer, Executor& executor);

}  // namespace snug::runtime
