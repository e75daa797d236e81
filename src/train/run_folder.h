// The folder of a run: recipe.yaml, plan.json, algorithms.json (what the backend chose by timing,
// where it did), measured.json, metrics.jsonl, checkpoints, the result.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/file.h"
#include "formats/recipe.h"

namespace snug::train {

// What to do with an output folder.
struct RunFolder {
  std::filesystem::path path;
  std::optional<std::filesystem::path> checkpoint;  // to resume from
  bool goes_on = false;                             // the checkpoint is of this folder's run
  int64_t step = 0;                                 // of the checkpoint, where the run goes on
  std::optional<base::File> lock;                   // the folder's, from when it is there

  std::filesystem::path algorithms() const { return path / kAlgorithms; }
  // That of the run which the checkpoint is of; none without a checkpoint.
  std::optional<std::filesystem::path> earlier_algorithms() const;

  static constexpr const char* kAlgorithms = "algorithms.json";
};

// Decides before anything is loaded, and keeps other runs out of a folder that is there. An
// existing, non-empty folder is a UserError unless the run goes on in it from its newest checkpoint
// or overwrite_output_dir is set. resume_from_checkpoint=auto takes the newest complete checkpoint,
// and starts afresh when there is none, which asks for a folder that is empty or holds only what a
// run writes before its first checkpoint.
RunFolder open_run_folder(const formats::Recipe& recipe);

// Creates the folder, unless another run did meanwhile, and writes recipe.yaml. With
// overwrite_output_dir the folder is emptied, or, where its run goes on, left by the checkpoints
// that are later than the one it goes on from; a folder that the job reads from is never emptied.
void create_run_folder(RunFolder& folder, const formats::Recipe& recipe);

}  // namespace snug::train
