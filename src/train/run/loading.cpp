// Fills what is planned: weights, an adapter, what was trained before, and the choices of
// algorithms that a run goes on with.
#include <fmt/format.h>

#include <chrono>

#include "base/console.h"
#include "base/file.h"
#include "base/seconds_since.h"
#include "runtime/loading/load_weights.h"
#include "runtime/saving/adapter.h"
#include "runtime/saving/checkpoint_folders.h"
#include "train/kept_reference.h"
#include "train/resume.h"
#include "train/run/run.h"
#include "train/run_identity.h"

namespace snug::train {

namespace fs = std::filesystem;

void Run::take_choices() {
  if (recipe_.deterministic) return;
  const auto path = folder_.earlier_algorithms();
  if (!path || !fs::exists(*path)) return;
  const std::string refusal =
      session_.backend().take_choices(base::read_text_file(*path), path->string());
  if (!refusal.empty()) say_timed_anew(refusal);
}

void Run::say_choices() const {
  const backends::Choices choices = session_.backend().choices();
  if (choices.text.empty()) return;
  if (const auto path = folder_.earlier_algorithms(); path && !fs::exists(*path))
    say_timed_anew(fmt::format("{} is not there", path->string()));
  if (!choices.summary.empty()) base::say("{}", choices.summary);
}

void Run::say_timed_anew(const std::string& reason) {
  base::say(
      "{}. Algorithms are timed again, so the last bits of numbers may differ from a run that "
      "was not interrupted",
      reason);
}

void Run::load() {
  take_choices();
  // Where one rank has too little memory, all say so.
  ranks_.on_all([&] { session_.open(planned_->job); });
  say_outside("tuning");
  const auto start = std::chrono::steady_clock::now();
  if (const auto report = runtime::set_weights(model_, recipe_.init, session_.executor()))
    say_read(*report);
  if (is_adapted() && recipe_.adapter.empty()) {
    runtime::initialise_adapter(session_.executor());
  } else {
    if (is_adapted())
      add_adapter(state_.identity,
                  runtime::load_adapter(recipe_.adapter, runtime::to_train_on(*planned_),
                                        session_.executor()));
    runtime::initialise(session_.executor());
  }
  session_.backend().synchronise();
  measured_.load_seconds = base::seconds_since(start);
  if (keeps_reference())
    measured_.reference_seconds =
        make_reference(folder_, planned_->spec, data_, session_.executor());
  if (folder_.checkpoint) restore();
  session_.executor().run(program::ProgramName::prepare);
}

void Run::say_outside(const char* after) const {
  const auto card = session_.backend().device();
  if (!card) return;
  const program::DeviceFacts& planned = *planned_->document.card;
  base::say("outside the arenas on the card after {}: {} of {} planned", after,
            plan::readable_bytes(card->outside_bytes),
            plan::readable_bytes(planned.outside_bytes + planned.reserved_bytes));
}

void Run::say_read(const runtime::LoadReport& report) {
  add_weights(state_.identity, report.digest);
  const double gigabytes = static_cast<double>(report.bytes_read) / 1e9;
  base::say("read {:.2f} GB of weights in {:.2f} s ({:.2f} GB/s){}", gigabytes, report.seconds,
            gigabytes / report.seconds,
            planned_->spec.quantization && !model_.config.stored ? ", quantised on the way" : "");
}

void Run::restore() {
  const runtime::TrainerState now = state_;
  state_ = train::restore(folder_, recipe_, now.identity, data_.training->rows, model_.config,
                          session_.executor());
  state_.identity = now.identity;
  length_ = length_after(length_, state_.step, state_.rows_consumed, now.rows_per_step);
  state_.max_steps = length_.steps;
  state_.rows_per_step = now.rows_per_step;
  state_.resumed_step = state_.step;
  state_.resumed_rows = state_.rows_consumed;
  take_history();
  base::say("resumed from {} at step {}{}", folder_.checkpoint->string(), state_.step,
            state_.step < length_.steps ? "" : ": nothing is left to do up to max_steps");
  // A kill may have come between the last checkpoint and the removal of surplus ones.
  if (folder_.goes_on)
    runtime::prune_checkpoints(folder_.path, state_.step, recipe_.save_total_limit,
                               state_.history.kept_checkpoints());
}

void Run::take_history() {
  runtime::RunHistory& history = state_.history;
  if (take_rule(best_rule_, history))
    base::say("earlier evaluations were ranked by another metric, which does not count any more");
  if (history.best_checkpoint == 0) return;
  const std::string here = ranks_.of_first(fs::exists(best_checkpoint()) ? "there" : "");
  if (!here.empty()) return;
  base::say("the best checkpoint so far, {}, is not there any more; later ones are compared",
            best_checkpoint().string());
  history.best_checkpoint = 0;
  history.best_saved_metric.reset();
}

fs::path Run::best_checkpoint() const {
  const int64_t step = state_.history.best_checkpoint;
  fs::path path = runtime::checkpoint_path(folder_.path, step);
  if (folder_.checkpoint && !fs::exists(path))
    return runtime::checkpoint_path(fs::weakly_canonical(*folder_.checkpoint).parent_path(), step);
  return path;
}

}  // namespace snug::train
