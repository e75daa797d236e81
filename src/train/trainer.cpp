#include "train/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <exception>
#include <filesystem>
#include <limits>
#include <thread>

#include "base/file.h"
#include "base/median.h"
#include "base/seconds_since.h"
#include "methods/loss_scale.h"
#include "program/ir/tensor_names.h"
#include "program/kinds/loss/loss_scale.h"
#include "runtime/process/process_memory.h"
#include "train/idle_adapter.h"
#include "train/micro_batch.h"

namespace snug::train {
namespace {

// The times of so many steps are kept for the median, in 8 MiB.
constexpr int64_t kMaxTimedSteps = 1 << 20;
constexpr size_t kWarmSteps = 2;

using program::ProgramName;

using Clock = std::chrono::steady_clock;

bool due(int64_t step, int64_t every) { return every > 0 && step % every == 0; }

std::string resume_advice(int64_t saved_step) {
  return saved_step > 0
             ? fmt::format("the checkpoint to resume from is that of step {}", saved_step)
             : "no checkpoint was saved before";
}

}  // namespace

Trainer::Trainer(const TrainerOptions& options, runtime::Executor& executor, StepData& data,
                 Evaluation* evaluation, formats::JsonLines* metrics, Progress* progress)
    : options_(options),
      executor_(executor),
      objective_(methods::objective_of(executor.job().objective.kind)),
      data_(data),
      evaluation_(evaluation),
      metrics_(metrics),
      progress_(progress) {
  step_seconds_.reserve(static_cast<size_t>(std::min(options.total_steps, kMaxTimedSteps)));
}

TrainerOutcome Trainer::run(runtime::TrainerState& state, const std::atomic<int>& stop_signal) {
  TrainerOutcome outcome;
  saved_step_ = state.step;
  first_step_ = state.step;
  const runtime::TrainerState before = state;
  bool saved = true;
  runtime::StopRequest stop = agreed(stop_signal);
  if (evaluation_ != nullptr && options_.eval_on_start && state.step == 0 && !stop.any())
    evaluate(state);
  for (; !is_over(state) && saved && !stop.any(); stop = agreed(stop_signal)) {
    if (!begin_step(state, stop_signal)) break;
    const BegunStep begun = *begun_;
    if (!is_awaited(begun) && !executor_.has_results()) continue;
    finish_step(state);
    if (!metrics_error_) saved = follow_up(begun, state);
  }
  if (begun_) finish_step(state);
  stop = agreed(stop_signal);
  const bool is_complete = is_over(state) && !stop.any();
  if (metrics_error_)
    saved = save_without_metrics(state);
  else
    saved = end(state, is_complete);
  outcome.last_loss = last_loss_;
  outcome.ended_early = is_complete && state.step < options_.total_steps;
  outcome.lost_folder = !saved || !has_folder();
  if (!outcome.lost_folder && metrics_ != nullptr) metrics_->sync();
  outcome.interrupted = stop.signal;
  outcome.last_step = state.step;
  outcome.median_step_seconds = base::median(step_seconds_);
  if (state.step > before.step)
    outcome.mean_step_tokens = static_cast<double>(state.total_tokens - before.total_tokens) /
                               static_cast<double>(state.step - before.step);
  outcome.eval_loss = eval_loss_;
  return outcome;
}

// Counts the step that was begun and not finished.
bool Trainer::is_over(const runtime::TrainerState& state) const {
  return state.step + (begun_ ? 1 : 0) >= options_.total_steps ||
         is_out_of_patience(options_.best, state.history);
}

bool Trainer::saves_after(const BegunStep& begun) const {
  switch (options_.save_strategy) {
    case formats::SaveStrategy::steps:
      return due(begun.step, options_.save_steps);
    case formats::SaveStrategy::epoch:
      return begun.ends_epoch;
    case formats::SaveStrategy::best:  // what is evaluated says it
    case formats::SaveStrategy::no:
      return false;
  }
  return false;
}

bool Trainer::evaluates_after(const BegunStep& begun) const {
  if (evaluation_ == nullptr || options_.eval_strategy == formats::EvalStrategy::no) return false;
  if (options_.best.ranks() && saves_after(begun)) return true;
  return options_.eval_strategy == formats::EvalStrategy::epoch
             ? begun.ends_epoch
             : due(begun.step, options_.eval_steps);
}

bool Trainer::looks_at_adapter_after(int64_t step) const {
  if (has_moved_ || !options_.guards.has(formats::Guard::idle_adapter)) return false;
  const int64_t warm = options_.schedule.warmup_steps;
  return step > warm && step >= std::min(options_.total_steps, warm + kIdleUpdates);
}

bool Trainer::is_awaited(const BegunStep& begun) const {
  return begun.step == options_.total_steps || saves_after(begun) || evaluates_after(begun) ||
         looks_at_adapter_after(begun.step) || data_.runs_model(begun.step + 1);
}

bool Trainer::follow_up(const BegunStep& begun, runtime::TrainerState& state) {
  if (looks_at_adapter_after(state.step)) look_at_adapter(state);
  const bool evaluates = evaluates_after(begun);
  if (evaluates) evaluate(state);
  if (metrics_error_) return true;
  const bool is_new_best = evaluates && is_best_;
  if (saves_after(begun) || (is_new_best && options_.save_strategy == formats::SaveStrategy::best))
    return save(state);
  return true;
}

// Steps that a loss scale skipped moved nothing.
void Trainer::look_at_adapter(const runtime::TrainerState& state) {
  if (state.step - state.skipped_steps <= options_.schedule.warmup_steps) return;
  has_moved_ = true;
  if (is_idle_adapter(executor_, options_.ranks))
    throw stopped_by_guard(idle_adapter_text(state.step), state.history);
}

// A run that goes on from its last step was evaluated there as far as its interval says.
bool Trainer::lacks_evaluation(int64_t step) const {
  if (evaluation_ == nullptr || options_.eval_strategy == formats::EvalStrategy::no) return false;
  if (step > first_step_) return evaluated_step_ != step;
  return options_.eval_strategy == formats::EvalStrategy::steps && !due(step, options_.eval_steps);
}

// The last evaluation and the last checkpoint, where the run does not have them yet.
bool Trainer::end(runtime::TrainerState& state, bool is_complete) {
  bool is_new_best = false;
  if (is_complete && lacks_evaluation(state.step)) {
    evaluate(state);
    is_new_best = evaluated_step_ == state.step && is_best_;
  }
  if (metrics_error_) return save_without_metrics(state);
  if (has_saved(state.step, !is_complete)) return true;
  const formats::SaveStrategy strategy = options_.save_strategy;
  const bool saves = !is_complete || strategy == formats::SaveStrategy::steps ||
                     strategy == formats::SaveStrategy::epoch ||
                     (is_new_best && strategy == formats::SaveStrategy::best);
  return !saves || save(state, !is_complete);
}

bool Trainer::has_saved(int64_t step, bool is_interrupted) const {
  return saved_step_ == step && !(is_interrupted && options_.save_only_model);
}

// A rank by itself notices a signal between micro-batches too.
runtime::StopRequest Trainer::agreed(const std::atomic<int>& stop_signal) const {
  const runtime::StopRequest own{.signal = stop_signal.load(),
                                 .fails = metrics_error_.has_value() || !has_folder()};
  return options_.ranks == nullptr ? own : options_.ranks->agree(own);
}

// A folder is removed file by file, itself last: where one of its files was gone, it may be next.
bool Trainer::keeps_folder() const {
  constexpr int kLooks = 20;
  for (int look = 0; look < kLooks && has_folder(); ++look)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  return has_folder();
}

// False when the folder is not in its place any more: nothing of it counts then, and a failure to
// write was no surprise.
bool Trainer::save(runtime::TrainerState& state, bool is_interrupted) {
  if (!has_folder()) return false;
  if (options_.best.ranks() && evaluated_step_ == state.step)
    count_checkpoint(options_.best, metric_, state.step, state.history);
  if (is_sound(state.history)) state.history.sound_checkpoint = state.step;
  try {
    runtime::TrainerState saved = state;
    saved.only_model = options_.save_only_model && !is_interrupted;
    saved.data = data_.state(state.step);
    runtime::save_checkpoint(options_.checkpoint, saved, executor_);
  } catch (const std::exception&) {
    if (keeps_folder()) throw;
    return false;
  }
  saved_step_ = state.step;
  return has_folder();
}

// The end of a run that cannot write its metrics: false when that is because its folder is gone,
// else an error.
bool Trainer::save_without_metrics(runtime::TrainerState& state) {
  const auto fail_to_save = [&](const std::string& reason) {
    base::throw_user_error("{}; the checkpoint of step {} could not be saved either: {}",
                           metrics_error_->what(), state.step, reason);
  };
  try {
    if (!has_saved(state.step, true) && !save(state, true)) return false;
  } catch (const std::filesystem::filesystem_error& error) {
    fail_to_save(base::as_user_error(error).what());
  } catch (const std::exception& error) {
    fail_to_save(error.what());
  }
  if (!keeps_folder()) return false;
  record_unwritten();
  base::throw_user_error(
      "{}; the run stopped after step {}, checkpoint saved, resume_from_checkpoint=auto continues",
      metrics_error_->what(), state.step);
}

bool Trainer::begin_step(runtime::TrainerState& state, const std::atomic<int>& stop_signal) {
  const int64_t before = begun_ ? 1 : 0;  // steps that `state` does not count yet
  BegunStep begun;
  begun.start = Clock::now();
  begun.step = state.step + before + 1;
  if (options_.ranks != nullptr) options_.ranks->set_step(begun.step);
  begun.first_row = state.rows_consumed + (begun_ ? begun_->rows : 0);
  begun.rows = rows_of_step(begun.step, begun.first_row);
  const StepData::Step rows{begun.step, begun.first_row, begun.rows};
  const auto counts = data_.begin(rows, stop_signal);
  if (!counts) return false;
  begun.counts = *counts;
  begun.measures.assign(data_.measures().begin(), data_.measures().end());
  if (options_.save_strategy == formats::SaveStrategy::epoch ||
      options_.eval_strategy == formats::EvalStrategy::epoch)
    begun.ends_epoch = data_.ends_epoch(rows);
  // What the program `update` alone copies is written when the step before has been copied.
  if (options_.update_in_backward) set_update_inputs(begun, state);
  if (!queue_micro_batches(begun, state, stop_signal)) return false;
  if (begun_) finish_step(state);
  // An update in the backward pass is done already, so the step is.
  if (metrics_error_ && !options_.update_in_backward) return false;
  if (!options_.update_in_backward) set_update_inputs(begun, state);
  executor_.run(ProgramName::update);
  begun_ = begun;
  return true;
}

// A step that was skipped counts neither for the schedule nor for the optimizer.
void Trainer::set_update_inputs(BegunStep& begun, const runtime::TrainerState& state) {
  const int64_t updates = begun.step - state.skipped_steps;
  begun.learning_rate = options_.schedule.at(updates);
  executor_.set_input(program::kLearningRateName, static_cast<float>(begun.learning_rate));
  if (executor_.has(program::kStepName))
    executor_.set_input(program::kStepName, static_cast<int32_t>(updates));
}

// A run of whole epochs does not begin another one to fill its last step.
int64_t Trainer::rows_of_step(int64_t step, int64_t first_row) const {
  const bool is_last = step == options_.total_steps && first_row < options_.end_row;
  const int64_t whole = data_.step_rows();
  return is_last ? std::min(whole, options_.end_row - first_row) : whole;
}

bool Trainer::queue_micro_batches(const BegunStep& begun, runtime::TrainerState& state,
                                  const std::atomic<int>& stop_signal) {
  set_inputs(executor_, begun.counts);
  const int64_t micro_batches = data_.micro_batches();
  for (int64_t micro = 0; micro < micro_batches; ++micro) {
    if (stop_signal != 0 && ranks() == 1) return false;
    const ProgramName program = plan::micro_program(executor_.job(), micro, micro_batches);
    if (executor_.has(program::kRandomName))
      executor_.set_input(program::kRandomName,
                          std::array<int32_t, 2>{static_cast<int32_t>(begun.step),
                                                 static_cast<int32_t>(data_.first_row_of(micro))});
    data_.load(program, micro);
    // Loading waits for the micro-batch before, which comes after the update of the step before.
    if (begun_ && micro > 0 && executor_.has_results()) finish_step(state);
    run_batch(executor_, program);
  }
  return true;
}

// Whether the step was skipped, because its gradients were not finite.
bool Trainer::read_loss_scale(runtime::TrainerState& state, StepMetrics& metrics) {
  const std::string counts_name = program::host_name(program::kLossScaleCountsName);
  if (!executor_.has(counts_name)) return false;
  metrics.loss_scale = executor_.result<float>(program::kLossScaleName);
  const auto* counts = executor_.tensor(counts_name).as<const float>();
  const auto skipped = static_cast<int64_t>(counts[program::kSkippedSteps]);
  if (skipped > 0) ++state.skipped_steps;
  metrics.skipped_steps = state.skipped_steps;
  if (skipped >= methods::kMostSkippedSteps)
    throw base::UserError(skipped_steps_message(metrics, skipped, saved_step_), {}, kGuardExitCode);
  return skipped > 0;
}

void Trainer::finish_step(runtime::TrainerState& state) {
  BegunStep begun = *begun_;
  if (const auto dropout = read_dropout(executor_))
    begun.measures.push_back({.name = "dropout/kl", .value = *dropout, .is_shown = true});
  StepMetrics metrics;
  metrics.step = begun.step;
  metrics.loss = executor_.result<float>(program::kLossName);
  if (executor_.has(program::kRouterLossName)) {
    const double router_loss = executor_.result<float>(program::kRouterLossName);
    metrics.loss += router_loss;
    metrics.aux_loss = router_loss / options_.router_loss_factor;
  }
  metrics.grad_norm = executor_.result<float>(program::kGradientNormName);
  metrics.of_data = begun.measures;
  metrics.measure_names = objective_.measures;
  read_measures(executor_, std::span(metrics.measures).first(objective_.measures.size()));
  metrics.learning_rate = begun.learning_rate;
  metrics.tokens = begun.counts.tokens;
  metrics.trained_tokens = begun.counts.trained_tokens;
  // The device did not begin before it had finished the step before.
  metrics.step_seconds = base::seconds_since(std::max(begun.start, finished_));
  finished_ = Clock::now();
  metrics.tokens_per_second = static_cast<double>(metrics.tokens) / metrics.step_seconds;
  metrics.resident_bytes = runtime::process_memory().resident_bytes;
  if (!read_loss_scale(state, metrics)) watch(metrics, state);

  if (step_seconds_.size() < step_seconds_.capacity())
    step_seconds_.push_back(metrics.step_seconds);
  last_loss_ = metrics.loss;
  state.step = begun.step;
  state.rows_consumed += begun.rows;
  state.epoch =
      static_cast<double>(state.rows_consumed) / static_cast<double>(data_.rows_per_epoch());
  state.total_tokens += metrics.tokens;
  state.trained_tokens += metrics.trained_tokens;
  state.train_seconds += metrics.step_seconds;
  metrics.epoch = state.epoch;
  begun_.reset();
  log(metrics);
  if (step_seconds_.size() == kWarmSteps && options_.on_warm) options_.on_warm();
}

void Trainer::record(std::string_view line) {
  if (metrics_ == nullptr) return;
  if (!metrics_error_) {
    try {
      metrics_->append(line);
      if (options_.on_record) options_.on_record(line);
      return;
    } catch (const base::UserError& error) {
      metrics_error_ = error;
    }
  }
  // A file without this line, but with later ones, would have a hole.
  unwritten_.emplace_back(line);
}

// A run that goes on after the checkpoint makes these lines no more. What kept them from being
// written may be over; where it is not, that was told.
void Trainer::record_unwritten() {
  try {
    for (const std::string& line : unwritten_) metrics_->append(line);
    metrics_->sync();
  } catch (const base::UserError&) {
  }
}

void Trainer::log(const StepMetrics& metrics) {
  write_json(metrics, line_);
  record(line_);
  const bool is_logged =
      due(metrics.step, options_.logging_steps) || metrics.step == options_.total_steps;
  if (progress_ != nullptr) progress_->show(metrics, is_logged);
}

void Trainer::watch(const StepMetrics& metrics, runtime::TrainerState& state) const {
  const bool is_finite = std::isfinite(metrics.grad_norm) && std::isfinite(metrics.loss);
  if (!is_finite && options_.guards.has(formats::Guard::not_finite))
    throw base::UserError(bad_step_message(metrics, options_.update_in_backward, saved_step_), {},
                          kGuardExitCode);
  if (const auto what = watch_step(options_.guards, metrics, state.history))
    throw stopped_by_guard(*what, state.history);
  if (progress_ == nullptr) return;
  for (const std::string& warning : warnings_of(options_.guards, metrics, state.history))
    progress_->note(warning);
}

void Trainer::evaluate(runtime::TrainerState& state) {
  evaluation_->run();
  EvaluationValue judged = evaluation_->judged();
  judged.value = agreed(judged.value);
  eval_loss_ = evaluation_->loss();
  if (options_.on_evaluation) options_.on_evaluation(state.step);
  record(evaluation_->json(state.step));
  if (progress_ != nullptr) progress_->note(evaluation_->text(state.step));
  if (state.step > 0 && state.step == first_step_) return;
  const bool is_last = state.step == options_.total_steps;
  if (const auto what =
          watch_evaluation(options_.guards, judged, state.step, is_last, state.history))
    throw stopped_by_guard(*what, state.history);
  // As in transformers, the model that training began with is not ranked.
  if (state.step == 0) return;
  evaluated_step_ = state.step;
  if (!options_.best.ranks()) return;
  metric_ = agreed(evaluation_->metric(options_.best.metric));
  is_best_ = count_evaluation(options_.best, metric_, state.history);
}

double Trainer::agreed(double value) const {
  if (options_.ranks == nullptr || options_.ranks->size() == 1) return value;
  const std::string bits = options_.ranks->of_first(std::to_string(std::bit_cast<int64_t>(value)));
  return std::bit_cast<double>(static_cast<int64_t>(std::stoll(bits)));
}

std::string skipped_steps_message(const StepMetrics& metrics, int64_t in_a_row,
                                  int64_t saved_step) {
  return fmt::format(
      "step {}: the gradients of {} steps in a row were not finite (the loss scale is now {}, "
      "the loss {}); the weights were not updated in them, and the run stopped without saving. "
      "Lower learning_rate, look for broken records in the data, or use compute_dtype=bf16 or "
      "fp32; {}",
      metrics.step, in_a_row, *metrics.loss_scale, metrics.loss, resume_advice(saved_step));
}

std::string bad_step_message(const StepMetrics& metrics, bool update_in_backward,
                             int64_t saved_step) {
  const bool was_updated = std::isfinite(metrics.grad_norm);
  const std::string what =
      was_updated ? fmt::format(
                        "the loss is {}, though the gradient norm is {}, so the weights were still "
                        "updated",
                        metrics.loss, metrics.grad_norm)
                  : fmt::format("the gradient norm is {} (loss {}), so {} were not updated",
                                metrics.grad_norm, metrics.loss,
                                update_in_backward ? "the tensors whose own gradient is not finite"
                                                   : "the weights");
  return fmt::format(
      "step {}: {}, and the run stopped without saving. Lower learning_rate (now {:.2e}), lengthen "
      "the warm-up, or look for broken records in the data; {}",
      metrics.step, what, metrics.learning_rate, resume_advice(saved_step));
}

}  // namespace snug::train
