// A run of training, stage by stage: what each stage leaves to the next are the fields. Nothing
// large is allocated before the plan is known to fit, and nothing is written, nor an older run
// removed, before everything that is read was found sound.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/agreement.h"
#include "formats/recipe/recipe.h"
#include "methods/objective.h"
#include "models/config/config.h"
#include "plan/document/measured.h"
#include "plan/job/assembly.h"
#include "runtime/loading/load_weights.h"
#include "runtime/process/job_ranks.h"
#include "runtime/saving/checkpoint.h"
#include "runtime/saving/trainer_state.h"
#include "runtime/session.h"
#include "train/batch_loader.h"
#include "train/best_model.h"
#include "train/data.h"
#include "train/evaluated_answers.h"
#include "train/run_folder.h"
#include "train/run_length.h"
#include "train/seen_run.h"
#include "train/step_data.h"
#include "train/stop_signal.h"
#include "train/trainer.h"

namespace snug::train {

// One thread; the ranks outlive it.
class Run {
 public:
  // Opens the run's folder, the model and the backend. Throws UserError, as all stages do.
  Run(const formats::Recipe& recipe, const runtime::Ranks& ranks);

  // All stages; the exit code.
  int run();

 private:
  bool is_adapted() const { return planned_->spec.is_adapted(); }
  bool keeps_reference() const {
    return planned_->spec.objective.reference == methods::ReferenceModel::kept;
  }

  // run/planning.cpp: reads the data, and plans.
  void read_data();
  void make_plan();
  // Of several ranks all plan the job, with what the first chose where the recipe leaves it open.
  void plan_as_first(plan::TrainingInputs inputs, const plan::MeasureProcess& measure);
  // Where the job does not fit on one rank, all refuse it.
  void refuse_misfit() const;
  // Of the evaluations of this run.
  BestRule best_rule() const;
  // Before anything large is allocated: another run's checkpoint is refused, and so is a metric
  // that no evaluation gives.
  void identify();
  // What all ranks must have found in their files, and compute with, alike.
  std::vector<comm::NamedValue> agreed_values() const;

  // run/loading.cpp: allocates what is planned, and fills it from the model, an adapter and a
  // checkpoint.
  // A run that goes on computes with the algorithms it had, and so to the same bits. One that is
  // deterministic had none that were chosen by timing.
  void take_choices();
  void say_choices() const;
  static void say_timed_anew(const std::string& reason);
  void load();
  // What of a card's memory is no arena's: kernels load when they are first timed or run.
  void say_outside(const char* after) const;
  void say_read(const runtime::LoadReport& report);
  void restore();
  // A run knows its best, unless it is ranked otherwise now, or the folder went.
  void take_history();
  // In the run's folder, or next to the checkpoint of another folder that it goes on from.
  std::filesystem::path best_checkpoint() const;

  // run/training.cpp: the steps, their data and evaluations.
  int64_t steps_in(double said) const { return formats::steps_in(said, length_.steps); }
  // Of what an evaluation generated, some is shown.
  void show_answers(const EvaluatedAnswers& answers, int64_t step);
  // Null where evaluations ask for none.
  std::unique_ptr<EvaluatedAnswers> evaluated_answers();
  // What ended a run too early stands on its page too.
  TrainerOutcome train_and_report(const StopSignal& signal);
  std::unique_ptr<StepData> step_data();
  TrainerOutcome train(const StopSignal& signal);

  // run/result.cpp: the result, what was measured, and where the state goes if the folder went.
  void write_plan(const RunFolder& folder) const;
  runtime::CheckpointOptions checkpoint_options(const std::filesystem::path& output_dir) const;
  // What a second run wrote in the same place, or nobody: nothing more of this one goes there, and
  // its state, whole, to where its folder is now or to a new one.
  [[noreturn]] void leave_lost_folder() const;
  // The result and what was measured. The folder may go until the last file of it.
  void finish(const TrainerOutcome& outcome);
  void say_early_end(const TrainerOutcome& outcome) const;
  // Restores the best checkpoint, whose state is then the run's: what is saved of it goes on from
  // there. A checkpoint of the model alone is copied instead. Whether the result is there now.
  bool take_best();
  std::filesystem::path result_folder() const;
  // The result is the average of what was trained, where the recipe asks for one; checkpoints hold
  // both.
  void take_average();
  void save_result();
  void measure(const TrainerOutcome& outcome);

  const runtime::Ranks& ranks_;
  RunFolder folder_;
  models::ModelSource model_;
  formats::Recipe recipe_;
  RunData data_;
  RunLength length_;
  BestRule best_rule_;
  std::optional<plan::PlannedTraining> planned_;
  runtime::Session session_;
  plan::Measured measured_;
  runtime::TrainerState state_;
  bool has_average_ = false;  // in the place of what was trained
  // Of the first rank, once it trains.
  std::optional<SeenRun> seen_;
  std::optional<BatchLoader> loader_;
};

}  // namespace snug::train
