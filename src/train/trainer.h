// The training loop: micro-batches, update, metrics, evaluation, checkpoints. Between two steps
// nothing is allocated; whatever changes from step to step is a scalar tensor.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "formats/json_lines.h"
#include "runtime/checkpoint.h"
#include "runtime/executor.h"
#include "runtime/trainer_state.h"
#include "train/batch_loader.h"
#include "train/folder_lock.h"
#include "train/lr_schedule.h"
#include "train/progress.h"

namespace snug::train {

struct TrainerOptions {
  int64_t total_steps = 0;
  int64_t rows = 1;          // a micro-batch
  int64_t accumulation = 1;  // micro-batches a step
  bool update_in_backward = false;
  int64_t logging_steps = 1;
  int64_t eval_steps = 0;  // 0: only at the end
  int64_t save_steps = 0;  // 0: only at the end
  LrSchedule schedule;
  runtime::CheckpointOptions checkpoint;
  const FolderLock* lock = nullptr;  // of the run's folder; null: it is not looked after
};

struct TrainerOutcome {
  int64_t last_step = 0;
  bool interrupted = false;  // stopped by a signal after saving
  bool lost_folder = false;  // stopped because the run's folder is not in its place; not saved
  double median_step_seconds = 0;
  double mean_step_tokens = 0;  // of documents, in the steps of this process; 0: none
  double last_loss = 0;
  std::optional<double> eval_loss;
};

class Trainer {
 public:
  // `evaluation` may be null. `state` is where to go on: step 0 for a fresh run.
  Trainer(const TrainerOptions& options, runtime::Executor& executor, BatchLoader& data,
          BatchLoader* evaluation, formats::JsonLines& metrics, Progress& progress);

  // Runs to the end or until `stop_signal` is not 0, then saves a checkpoint. Stops without saving
  // when the run's folder was removed or renamed: `state` is then what is to be saved elsewhere.
  // Throws UserError when a loss or gradient norm is not finite: nothing is saved then, the last
  // checkpoint is intact. Also when a line of metrics cannot be written, after saving a checkpoint.
  TrainerOutcome run(runtime::TrainerState& state, const std::atomic<int>& stop_signal);

  // One optimizer step, and its line in metrics.jsonl and on the terminal. Neither allocates.
  // Nothing when the signal came between its micro-batches: the weights are as they were before.
  std::optional<StepMetrics> step(runtime::TrainerState& state,
                                  const std::atomic<int>& stop_signal);
  // A line that cannot be written ends run().
  void log(const StepMetrics& metrics);

 private:
  double evaluate();
  void evaluate_and_log(int64_t step);
  bool has_folder() const { return options_.lock == nullptr || options_.lock->is_in_place(); }
  bool keeps_folder() const;
  bool save(const runtime::TrainerState& state);
  bool save_without_metrics(const runtime::TrainerState& state);
  void record(std::string_view line);

  const TrainerOptions& options_;
  runtime::Executor& executor_;
  BatchLoader& data_;
  BatchLoader* evaluation_;
  formats::JsonLines& metrics_;
  Progress& progress_;
  std::vector<double> step_seconds_;
  std::optional<double> eval_loss_;
  int64_t saved_step_ = 0;                        // of the newest checkpoint; 0: none
  std::optional<base::UserError> metrics_error_;  // why a line could not be written
};

// What a user is told of a step whose loss or gradient norm is not finite. A norm that is not
// skips the update on the device, or with `update_in_backward` that of each tensor with such a norm
// of its own; a loss alone does not. `saved_step`: of the newest checkpoint.
std::string bad_step_message(const StepMetrics& metrics, bool update_in_backward,
                             int64_t saved_step);

}  // namespace snug::train
