// The end of a run: its result, what was measured next to what was planned, and a last place for
// its state where its folder went.
#include <fmt/format.h>

#include <limits>

#include "base/console.h"
#include "base/error.h"
#include "base/file.h"
#include "runtime/saving/adapter.h"
#include "runtime/saving/save_model.h"
#include "train/measured_run.h"
#include "train/run/run.h"

namespace snug::train {

namespace fs = std::filesystem;

void Run::write_plan(const RunFolder& folder) const {
  base::write_file_atomically(folder.path / RunFolder::kPlan, plan::to_json(planned_->document));
  const backends::Choices choices = session_.backend().choices();
  if (choices.text.empty()) return;
  base::write_file_atomically(folder.algorithms(), choices.text);
}

runtime::CheckpointOptions Run::checkpoint_options(const fs::path& output_dir) const {
  runtime::CheckpointOptions options;
  options.output_dir = output_dir;
  options.model = model_;
  if (is_adapted())
    options.adapter = runtime::adapter_config(recipe_, model_.config, planned_->job);
  options.chat = data_.chat;
  options.save_total_limit = recipe_.save_total_limit;
  return options;
}

void Run::leave_lost_folder() const {
  const std::string what = fmt::format(
      "output_dir {} was removed or renamed while the run wrote to it, so the run "
      "stopped after step {}",
      folder_.path.string(), state_.step);
  if (state_.step == 0) base::throw_user_error("{}; there is nothing to save", what);
  if (has_average_)
    base::throw_user_error(
        "{}; the average that was to be the result is lost, and no checkpoint of it can be "
        "trained on",
        what);
  // The others write where the first one does, and it alone knows where the folder went.
  if (ranks_.size() > 1)
    base::throw_user_error("{}; with several ranks its state is not saved elsewhere", what);
  const RunFolder rescue = open_rescue_folder(folder_, recipe_);
  write_plan(rescue);
  runtime::CheckpointOptions options = checkpoint_options(rescue.path);
  options.save_total_limit = 0;
  const fs::path saved = runtime::save_checkpoint(options, state_, session_.executor());
  std::error_code unknown;
  base::throw_user_error(
      "{}; its checkpoint is {}, and output_dir={} resume_from_checkpoint=auto continues{}", what,
      saved.string(), rescue.path.string(),
      fs::exists(rescue.path / RunFolder::kMetrics, unknown)
          ? ""
          : "; the metrics of its steps were in the removed folder");
}

void Run::finish(const TrainerOutcome& outcome) {
  say_early_end(outcome);
  try {
    if (!recipe_.load_best_model_at_end || !take_best()) save_result();
    measure(outcome);
  } catch (const base::UserError&) {
    if (!folder_.lock || folder_.lock->is_in_place()) throw;
  }
  if (folder_.lock && !folder_.lock->is_in_place()) leave_lost_folder();
}

void Run::say_early_end(const TrainerOutcome& outcome) const {
  if (outcome.ended_early)
    base::say(
        "the run ended after step {} of {}: {} evaluations in a row were no better than {} = "
        "{:.6g} (early_stopping_patience)",
        state_.step, length_.steps, state_.history.worse_evaluations, best_rule_.metric,
        state_.history.best_metric.value_or(std::numeric_limits<double>::quiet_NaN()));
}

bool Run::take_best() {
  const runtime::RunHistory history = state_.history;
  if (history.best_checkpoint == 0) {
    base::say("no evaluation was better than others, so the result is the last model");
    return false;
  }
  base::say("the best checkpoint is that of step {}, with {} = {:.6g}: its model is the result",
            history.best_checkpoint, best_rule_.metric, *history.best_saved_metric);
  if (history.best_checkpoint == state_.step) return false;
  try {
    const fs::path best = best_checkpoint();
    if (runtime::read_checkpoint_state(best).only_model) {
      runtime::copy_result(best, result_folder(), session_.executor());
      return true;
    }
    state_ = runtime::restore_checkpoint(best, model_.config, session_.executor());
  } catch (const base::UserError& error) {
    base::throw_user_error(
        "{}. It was to be the result (load_best_model_at_end); resume_from_checkpoint=auto "
        "load_best_model_at_end=false writes that of the last step",
        error.what());
  }
  session_.executor().run(program::ProgramName::prepare);
  return false;
}

fs::path Run::result_folder() const {
  return folder_.path / (is_adapted() ? RunFolder::kAdapter : RunFolder::kModel);
}

void Run::take_average() {
  if (recipe_.ema_decay == 0) return;
  session_.executor().run(program::ProgramName::average);
  session_.executor().run(program::ProgramName::prepare);
  has_average_ = true;
  base::say("the result is the average of the weights over the steps (ema_decay={})",
            recipe_.ema_decay);
}

void Run::save_result() {
  take_average();
  if (is_adapted())
    runtime::save_adapter(
        result_folder(), runtime::adapter_config(recipe_, model_.config, planned_->job),
        {model_.folder, model_.config.text_module}, session_.executor(), data_.chat);
  else
    runtime::save_model(result_folder(), model_, session_.executor(), data_.chat);
}

void Run::measure(const TrainerOutcome& outcome) {
  plan::Measured& measured = measured_;
  add_memory(measured, planned_->process.resident_peak_bytes, session_.backend().device());
  measured.step_tokens = outcome.mean_step_tokens;
  measured.step_seconds = outcome.median_step_seconds;
  measured.data = measured_sources(data_);
  if (!ranks_.is_first()) return;
  base::write_file_atomically(folder_.path / RunFolder::kMeasured, plan::to_json(measured));
  seen_->finish(measured);
  base::say("{}", plan::comparison(planned_->document, measured));
}

}  // namespace snug::train
