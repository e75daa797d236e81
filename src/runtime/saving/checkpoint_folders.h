// Which checkpoints an output folder holds, which is newest, and which are too many.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace snug::runtime {

struct CheckpointFolder {
  std::filesystem::path path;
  int64_t step = 0;
};

struct CheckpointList {
  std::vector<CheckpointFolder> complete;  // by step, rising
  std::vector<std::string> ignored;        // one sentence for each folder that is not complete
};

// N of the name checkpoint-N; nothing for other names, those of transactions among them.
std::optional<int64_t> step_of(const std::string& name);

// OUTPUT_DIR/checkpoint-STEP
std::filesystem::path checkpoint_path(const std::filesystem::path& output_dir, int64_t step);

// All folders named checkpoint-N. A folder that does not exist has none. Complete is what has all
// its files in their sizes; their bytes are verified where one is resumed from
// (restore_checkpoint).
CheckpointList list_checkpoints(const std::filesystem::path& output_dir);

// The newest complete one, or nothing. Half-written and damaged ones are passed over.
std::optional<std::filesystem::path> find_latest_checkpoint(
    const std::filesystem::path& output_dir);

// Removes the oldest of the complete checkpoints up to that of step `newest`, until `keep` are
// left; 0 keeps all. Later ones, incomplete ones and those that are not as Snug wrote them are
// neither counted nor touched.
void prune_checkpoints(const std::filesystem::path& output_dir, int64_t newest, int64_t keep);

}  // namespace snug::runtime
