// Which checkpoints an output folder holds, which is the newest, and which ones to remove.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace snug::runtime {

struct CheckpointFolder {
  std::filesystem::path path;
  int64_t step = 0;
  bool only_model = false;  // no run resumes from it
};

struct CheckpointList {
  std::vector<CheckpointFolder> complete;  // in ascending order of their steps
  std::vector<std::string> ignored;        // one sentence for each folder that is incomplete
};

// The N of a name checkpoint-N; nothing for other names, including those of transactions.
std::optional<int64_t> step_of(const std::string& name);

// The path OUTPUT_DIR/checkpoint-STEP.
std::filesystem::path checkpoint_path(const std::filesystem::path& output_dir, int64_t step);

// All folders named checkpoint-N; none where output_dir does not exist. A checkpoint is complete if
// all its files exist with the listed sizes; their bytes are verified only on resuming
// (restore_checkpoint).
CheckpointList list_checkpoints(const std::filesystem::path& output_dir);

// The newest complete checkpoint, or nothing. Incomplete and damaged ones are skipped.
std::optional<std::filesystem::path> find_latest_checkpoint(
    const std::filesystem::path& output_dir);

// Removes the oldest complete checkpoints, among those up to step `newest`, until `keep` are left;
// 0 keeps all. The newest of these and those of the steps `spared` stay, and count. Later
// checkpoints, incomplete ones and those that Snug did not write this way are neither counted nor
// touched.
void prune_checkpoints(const std::filesystem::path& output_dir, int64_t newest, int64_t keep,
                       std::span<const int64_t> spared = {});

}  // namespace snug::runtime
