// The training loop: micro-batches, update, metrics, evaluation, checkpoints. Between two steps
// nothing is allocated. A step's loss and norm are read when they are there: on a device that works
// by itself, while it already runs the next step's micro-batches.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "formats/folder/json_lines.h"
#include "methods/objective.h"
#include "runtime/execution/executor.h"
#include "runtime/process/job_ranks.h"
#include "runtime/saving/checkpoint.h"
#include "runtime/saving/trainer_state.h"
#include "train/best_model.h"
#include "train/evaluation.h"
#include "train/folder_lock.h"
#include "train/guards.h"
#include "train/lr_schedule.h"
#include "train/progress.h"
#include "train/step_data.h"

namespace snug::train {

struct TrainerOptions {
  int64_t total_steps = 0;
  int64_t end_row =
      std::numeric_limits<int64_t>::max();  // the last step takes no rows from here on
  bool update_in_backward = false;
  double router_loss_factor = 0;  // of the loss that balances experts, where the job has it
  int64_t logging_steps = 1;
  formats::EvalStrategy eval_strategy = formats::EvalStrategy::steps;
  int64_t eval_steps = 0;  // 0: only at the end
  bool eval_on_start = false;
  formats::SaveStrategy save_strategy = formats::SaveStrategy::steps;
  int64_t save_steps = 0;        // 0: only at the end
  bool save_only_model = false;  // checkpoints of an uninterrupted run have no optimizer state
  BestRule best{};               // where it ranks evaluations, each checkpoint is evaluated
  GuardRules guards{};
  LrSchedule schedule;
  runtime::CheckpointOptions checkpoint;
  const FolderLock* lock = nullptr;       // of the run's folder; null: it is not looked after
  const runtime::Ranks* ranks = nullptr;  // null: one alone
  // It is called once, after two steps of this process: what a device takes by itself is taken
  // then.
  std::function<void()> on_warm = nullptr;
  // It is told of each evaluation, before its line of metrics is written.
  std::function<void(int64_t step)> on_evaluation = nullptr;
  // It is told each line of metrics, after it was written; only where metrics are written.
  std::function<void(std::string_view)> on_record = nullptr;
};

struct TrainerOutcome {
  int64_t last_step = 0;
  int interrupted = 0;       // the signal that stopped it, after saving; 0: none
  bool ended_early = false;  // by the patience of its rule
  bool lost_folder = false;  // stopped because the run's folder is not in its place; not saved
  double median_step_seconds = 0;
  double mean_step_tokens = 0;  // of documents, in the steps of this process; 0: none
  double last_loss = 0;
  std::optional<double> eval_loss;  // or what evaluations have in its place
};

class Trainer {
 public:
  // `evaluation`: null without evaluation data. `metrics` and `progress` are null on ranks that do
  // not show them.
  Trainer(const TrainerOptions& options, runtime::Executor& executor, StepData& data,
          Evaluation* evaluation, formats::JsonLines* metrics, Progress* progress);

  // Runs to the end or until `stop_signal` is not 0, then saves a checkpoint. Stops without saving
  // when the run's folder was removed or renamed: `state` is then what is to be saved elsewhere.
  // Throws UserError, with exit code 4, when a guard stops it (guards.h), or with a loss scale,
  // which skips steps whose gradients are not finite, when ten of them came in a row: nothing is
  // saved then, the last checkpoint is intact. Also when a line of metrics cannot be written, after
  // saving a checkpoint.
  TrainerOutcome run(runtime::TrainerState& state, const std::atomic<int>& stop_signal);

  // Gives the device the step after the last one begun, and finishes that one, if it is not
  // finished, before `update` changes the weights again: no update comes after a step whose numbers
  // are not finite, except with update_in_backward, where each tensor leaves itself alone then.
  // False when the step was not begun, because the signal came between its micro-batches or a line
  // of metrics could not be written: the weights are as the step before left them.
  bool begin_step(runtime::TrainerState& state, const std::atomic<int>& stop_signal);
  // Reads the loss and norm of the step that was begun last, counts it in `state`, and writes its
  // line in metrics.jsonl and on the terminal. Neither this nor begin_step allocates more than
  // a name.
  void finish_step(runtime::TrainerState& state);

 private:
  // A step that the device was given and whose results were not read.
  struct BegunStep {
    int64_t step = 0;
    double learning_rate = 0;
    int64_t first_row = 0;
    int64_t rows = 0;  // of all ranks; fewer in a last step that is short
    bool ends_epoch = false;
    methods::RowCounts counts;
    std::vector<NamedMeasure> measures{};  // of what it trains on
    std::chrono::steady_clock::time_point start;
  };
  void set_update_inputs(BegunStep& begun, const runtime::TrainerState& state);
  int64_t rows_of_step(int64_t step, int64_t first_row) const;
  bool queue_micro_batches(const BegunStep& begun, runtime::TrainerState& state,
                           const std::atomic<int>& stop_signal);
  // What comes after a step: an evaluation, a checkpoint, a look at the adapter.
  bool saves_after(const BegunStep& begun) const;
  bool evaluates_after(const BegunStep& begun) const;
  bool looks_at_adapter_after(int64_t step) const;
  // Whether that needs the step's results before the next one begins.
  bool is_awaited(const BegunStep& begun) const;
  bool is_over(const runtime::TrainerState& state) const;
  bool lacks_evaluation(int64_t step) const;
  // Does it; false when the run's folder is gone.
  bool follow_up(const BegunStep& begun, runtime::TrainerState& state);
  bool end(runtime::TrainerState& state, bool is_complete);
  void look_at_adapter(const runtime::TrainerState& state);
  // A line that cannot be written ends run().
  void log(const StepMetrics& metrics);
  bool read_loss_scale(runtime::TrainerState& state, StepMetrics& metrics);
  void watch(const StepMetrics& metrics, runtime::TrainerState& state) const;
  // Evaluates, and ranks the evaluation unless the step was done before this process began.
  void evaluate(runtime::TrainerState& state);
  // The first rank's value.
  double agreed(double value) const;
  bool has_folder() const { return options_.lock == nullptr || options_.lock->is_in_place(); }
  int64_t ranks() const { return options_.ranks == nullptr ? 1 : options_.ranks->size(); }
  // What all ranks know of what came to any of them.
  runtime::StopRequest agreed(const std::atomic<int>& stop_signal) const;
  bool keeps_folder() const;
  // What ends a run early saves a checkpoint from which it can go on, whatever save_only_model
  // says.
  bool save(runtime::TrainerState& state, bool is_interrupted = false);
  bool has_saved(int64_t step, bool is_interrupted) const;
  bool save_without_metrics(runtime::TrainerState& state);
  void record(std::string_view line);
  void record_unwritten();

  const TrainerOptions& options_;
  runtime::Executor& executor_;
  const methods::Objective& objective_;
  StepData& data_;
  Evaluation* evaluation_;
  formats::JsonLines* metrics_;
  Progress* progress_;
  std::optional<BegunStep> begun_;
  std::chrono::steady_clock::time_point finished_;  // the last step
  double last_loss_ = 0;
  std::vector<double> step_seconds_;
  std::optional<double> eval_loss_;
  int64_t first_step_ = 0;                        // steps done before this process began
  int64_t evaluated_step_ = 0;                    // of the last evaluation that was ranked; 0: none
  double metric_ = 0;                             // by which it was
  bool is_best_ = false;                          // whether it was better than all before
  bool has_moved_ = false;                        // whether the adapter was looked at
  int64_t saved_step_ = 0;                        // of the newest checkpoint; 0: none
  std::optional<base::UserError> metrics_error_;  // why a line could not be written
  std::vector<std::string> unwritten_;            // that line and those after it
  std::string line_;                              // of metrics.jsonl, of the last step
};

// What a user is told of a step whose loss or gradient norm is not finite. A norm that is not
// skips the update on the device, or with `update_in_backward` that of each tensor with such a norm
// of its own; a loss alone does not. `saved_step`: of the newest checkpoint.
std::string bad_step_message(const StepMetrics& metrics, bool update_in_backward,
                             int64_t saved_step);

// What a user is told when so many steps in a row, the last of them in `metrics`, were skipped by
// the loss scale.
std::string skipped_steps_message(const StepMetrics& metrics, int64_t in_a_row, int64_t saved_step);

}  // namespace snug::train
