// The folder of a run: recipe.yaml, plan.json, algorithms.json (what the backend chose by timing,
// where it did), reference_log_probabilities.safetensors (of the model as training began, where
// they are kept), measured.json (once the run finished), metrics.jsonl, samples.jsonl (answers that
// evaluations generated, where they do), report.html (all of these as a page), run.log (what was
// said), reward_program.log (what programs of rewards said), checkpoints, the result.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "formats/recipe/recipe.h"
#include "runtime/process/job_ranks.h"
#include "train/folder_lock.h"

namespace snug::train {

// What to do with an output folder.
struct RunFolder {
  std::filesystem::path path;
  std::optional<std::filesystem::path> checkpoint;  // to resume from
  bool goes_on = false;                             // the checkpoint is of this folder's run
  int64_t step = 0;                                 // of the checkpoint, where the run goes on
  std::optional<FolderLock> lock;                   // the folder's, from when it is there

  // The log of a rank that is not the first.
  static std::string rank_log(int rank) { return "run.rank-" + std::to_string(rank) + ".log"; }
  static bool is_rank_log(std::string_view name) {
    return name.starts_with("run.rank-") && name.ends_with(".log");
  }
  std::filesystem::path algorithms() const { return path / kAlgorithms; }
  // The algorithms of the run that wrote the checkpoint; none without a checkpoint.
  std::optional<std::filesystem::path> earlier_algorithms() const;

  static constexpr const char* kRecipe = "recipe.yaml";
  static constexpr const char* kPlan = "plan.json";
  static constexpr const char* kAlgorithms = "algorithms.json";
  static constexpr const char* kReference = "reference_log_probabilities.safetensors";
  static constexpr const char* kMetrics = "metrics.jsonl";
  static constexpr const char* kSamples = "samples.jsonl";
  static constexpr const char* kRewardLog = "reward_program.log";
  static constexpr const char* kLog = "run.log";
  static constexpr const char* kMeasured = "measured.json";
  static constexpr const char* kReport = "report.html";
  static constexpr const char* kAdapter = "adapter";
  static constexpr const char* kModel = "model";
  static constexpr const char* kMerged = "merged";
};

// Decides before anything is loaded, and keeps other runs out of a folder that is there. An
// existing, non-empty folder is a UserError unless the run goes on in it from its newest checkpoint
// or overwrite_output_dir is set. resume_from_checkpoint=auto takes the newest complete checkpoint,
// and starts afresh when there is none, which asks for a folder that is empty or holds only what a
// run writes before its first checkpoint. Also a UserError: what the run would remove or replace
// was not written by a run of Snug, or is read by the job (train/run_entries.h). Where there are
// several ranks, the first decides, and it alone locks and writes.
RunFolder open_run_folder(const formats::Recipe& recipe, const runtime::Ranks& ranks = {});

// Creates the folder, unless another run did meanwhile, sweeps what killed runs left of their work,
// marks it as a run's, begins its log and writes recipe.yaml. With overwrite_output_dir what an
// earlier run wrote is removed, or, where that run goes on, the checkpoints that are later than the
// one it goes on from.
void create_run_folder(RunFolder& folder, const formats::Recipe& recipe,
                       const runtime::Ranks& ranks = {});

// Where the state of a run goes whose folder was removed or renamed while it ran: to where the
// folder is now, or into a new one, OUTPUT_DIR-rescued (or -rescued-2 and so on), which is then a
// run's folder like any other.
RunFolder open_rescue_folder(const RunFolder& lost, const formats::Recipe& recipe);

}  // namespace snug::train
