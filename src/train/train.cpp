#include "train/train.h"

#include <fmt/format.h>

#include "backends/recipe_backend.h"
#include "base/console.h"
#include "models/config/config.h"
#include "plan/spec/generation_spec.h"
#include "plan/spec/resolve.h"
#include "runtime/loading/load_weights.h"
#include "train/asked_questions.h"
#include "train/check_before_ranks.h"
#include "train/kept_reference.h"
#include "train/on_first_rank.h"
#include "train/run/run.h"
#include "train/stop_signal.h"

namespace snug::train {

Run::Run(const formats::Recipe& recipe, const runtime::Ranks& ranks)
    : ranks_(ranks),
      folder_(open_run_folder(recipe, ranks)),
      model_(runtime::open_model_to_train(recipe)),
      recipe_(plan::resolve(recipe, model_.config)),
      session_(backends::open_backend(recipe_, ranks.mesh()), ranks.mesh()) {}

int Run::run() {
  read_data();
  make_plan();
  identify();
  load();
  // Up to here a signal ends the process at once: nothing was written yet. What is written is
  // written whole.
  const StopSignal signal;
  create_run_folder(folder_, recipe_, ranks_);
  if (keeps_reference() && ranks_.is_first())
    save_reference(folder_.path / RunFolder::kReference, data_);
  if (ranks_.is_first()) {
    say_choices();
    write_plan(folder_);
  }
  const TrainerOutcome outcome = train_and_report(signal);
  if (outcome.lost_folder) leave_lost_folder();
  if (outcome.interrupted != 0) {
    if (seen_) seen_->stop(fmt::format("stopped after step {}", outcome.last_step));
    base::say("{}", stopped_text(outcome.last_step));
    return 128 + outcome.interrupted;
  }
  finish(outcome);
  ranks_.wait_for_all();
  return 0;
}

int train(const formats::Recipe& recipe, const MeasureMachine& measure, const AfterRun& after) {
  check_before_ranks(recipe);
  const runtime::Ranks ranks = runtime::Ranks::join(recipe);
  if (!ranks.is_first()) base::leave_console_to_others();
  try {
    formats::Recipe settled = recipe;
    ranks.settle(settled.devices, settled.nodes, settled.threads);
    // Slips of the pen are reported before the machine is measured.
    models::find_model(settled.model);
    plan::check_answer_keys(settled);
    answer_scores(settled);
    if (measure && ranks.is_first()) measure(settled);
    ranks.wait_for_all();
    const int code = Run(settled, ranks).run();
    return code == 0 && after ? on_first_rank([&] { return after(settled); }, ranks) : code;
  } catch (const std::exception& error) {
    ranks.end_with(error);
    throw;
  }
}

}  // namespace snug::train
