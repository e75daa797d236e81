// Stages: open the run folder, read the data, plan, refuse what does not fit, allocate, load,
// restore, train, save, measure. Nothing large is allocated before the plan is known to fit, and
// nothing is written, nor an older run removed, before everything that is read was found sound.
#include "train/train.h"

#include <fmt/format.h>

#include <chrono>
#include <limits>
#include <utility>

#include "backends/recipe_backend.h"
#include "base/console.h"
#include "base/error.h"
#include "base/file.h"
#include "base/seconds_since.h"
#include "methods/objective.h"
#include "models/config/config.h"
#include "plan/document/measured.h"
#include "plan/job/assembly.h"
#include "plan/spec/generation_spec.h"
#include "plan/spec/resolve.h"
#include "runtime/execution/rehearsal.h"
#include "runtime/loading/load_weights.h"
#include "runtime/process/job_ranks.h"
#include "runtime/process/process_memory.h"
#include "runtime/saving/adapter.h"
#include "runtime/saving/checkpoint_folders.h"
#include "runtime/saving/save_model.h"
#include "runtime/session.h"
#include "train/asked_questions.h"
#include "train/audit.h"
#include "train/best_model.h"
#include "train/check_before_ranks.h"
#include "train/data.h"
#include "train/data_sources.h"
#include "train/document_steps.h"
#include "train/evaluated_answers.h"
#include "train/evaluation.h"
#include "train/evaluation_names.h"
#include "train/files_fingerprint.h"
#include "train/generated_answers.h"
#include "train/guards.h"
#include "train/kept_reference.h"
#include "train/measured_run.h"
#include "train/on_first_rank.h"
#include "train/resume.h"
#include "train/resume_metrics.h"
#include "train/rewards/answer_steps.h"
#include "train/rewards/evaluated_rewards.h"
#include "train/rewards/prompt_documents.h"
#include "train/run_folder.h"
#include "train/run_identity.h"
#include "train/run_length.h"
#include "train/seen_run.h"
#include "train/stop_signal.h"
#include "train/trainer.h"

namespace snug::train {
namespace {

namespace fs = std::filesystem;

class Run {
 public:
  Run(const formats::Recipe& recipe, const runtime::Ranks& ranks)
      : ranks_(ranks),
        folder_(open_run_folder(recipe, ranks)),
        model_(runtime::open_model_to_train(recipe)),
        recipe_(plan::resolve(recipe, model_.config)),
        session_(backends::open_backend(recipe_, ranks.mesh()), ranks.mesh()) {}

  int run() {
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

 private:
  bool is_adapted() const { return planned_->spec.is_adapted(); }
  bool keeps_reference() const {
    return planned_->spec.objective.reference == methods::ReferenceModel::kept;
  }

  void read_data() {
    ranks_.on_all([&] { data_ = load_data(recipe_, model_, session_.backend()); });
    const bool has_prompts = !data_.prompts.empty();
    for (const text::LoadedSource& source : data_.training->dataset.sources)
      base::say("{}",
                has_prompts ? describe_prompts(source) : text::describe(source.audit, source.name));
    const std::string parts =
        describe_parts(data_.training->rows.options().parts, data_.training->dataset);
    if (!parts.empty()) base::say("{}", parts);
    for (const EvaluationSet& set : data_.evaluation)
      for (const text::LoadedSource& source : set.source->dataset.sources)
        base::say("{}", has_prompts ? describe_prompts(source)
                                    : text::describe(source.audit, source.name));
    runtime::release_freed_memory();
    if (ranks_.is_first() && !has_prompts)
      base::say("{}", short_text(audit({recipe_, recipe_, model_, data_}, text::kQuickAudit)));
    // What answers are made of texts by stays.
    if (recipe_.eval_generate == 0 && !has_prompts) data_.tokenizer.reset();
    runtime::release_freed_memory();
  }

  void make_plan() {
    // Ranks that chose by memory of their own would not run the same program.
    const int64_t capacity =
        ranks_.least(session_.backend().capacity_bytes(program::Space::device));
    const auto measure = [&](const plan::Job& job) {
      return runtime::rehearse(job, session_.backend());
    };
    if (recipe_.max_length == 0)
      recipe_ =
          with_settled_length(folder_, {recipe_, model_, session_.backend(), {}, false, capacity},
                              data_, measure, ranks_);
    length_ = run_length(recipe_, data_.training->rows);
    const plan::TrainingInputs inputs{recipe_,       model_, session_.backend(),
                                      data_.facts(), false,  capacity};
    if (recipe_.per_device_train_batch_size == 0)
      recipe_ = with_settled_rows(folder_, inputs, measure, ranks_);
    plan_as_first(inputs, measure);
    refuse_misfit();
    if (is_adapted() && !recipe_.adapter.empty())
      runtime::check_adapter(recipe_.adapter, runtime::to_train_on(*planned_), planned_->job);
    base::say("{}\n{}", plan::parameter_line(planned_->document),
              plan::summary(planned_->document));
    for (const std::string& notice : planned_->notices()) base::say("{}", notice);
  }

  // Of several ranks all plan the job, with what the first chose where the recipe leaves it open.
  void plan_as_first(plan::TrainingInputs inputs, const plan::MeasureProcess& measure) {
    const std::string chosen = ranks_.decided_by_first([&] {
      planned_.emplace(plan::assemble_training(inputs, measure));
      return plan::chosen_text(planned_->chosen());
    });
    if (planned_) return;
    inputs.chosen = plan::chosen_from_text(chosen);
    planned_.emplace(plan::assemble_training(inputs, measure));
  }

  // Where the job does not fit on one rank, all refuse it.
  void refuse_misfit() const {
    ranks_.on_all([&] {
      const plan::Verdict verdict = planned_->verdict();
      if (!verdict.fits) plan::refuse(recipe_, verdict);
    });
  }

  // A run that goes on computes with the algorithms it had, and so to the same bits. One that is
  // deterministic had none that were chosen by timing.
  void take_choices() {
    if (recipe_.deterministic) return;
    const auto path = folder_.earlier_algorithms();
    if (!path || !fs::exists(*path)) return;
    const std::string refusal =
        session_.backend().take_choices(base::read_text_file(*path), path->string());
    if (!refusal.empty()) say_timed_anew(refusal);
  }

  void write_plan(const RunFolder& folder) const {
    base::write_file_atomically(folder.path / RunFolder::kPlan, plan::to_json(planned_->document));
    const backends::Choices choices = session_.backend().choices();
    if (choices.text.empty()) return;
    base::write_file_atomically(folder.algorithms(), choices.text);
  }

  void say_choices() const {
    const backends::Choices choices = session_.backend().choices();
    if (choices.text.empty()) return;
    if (const auto path = folder_.earlier_algorithms(); path && !fs::exists(*path))
      say_timed_anew(fmt::format("{} is not there", path->string()));
    if (!choices.summary.empty()) base::say("{}", choices.summary);
  }

  static void say_timed_anew(const std::string& reason) {
    base::say(
        "{}. Algorithms are timed again, so the last bits of numbers may differ from a run that "
        "was not interrupted",
        reason);
  }

  void load() {
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

  // What of a card's memory is no arena's: kernels load when they are first timed or run.
  void say_outside(const char* after) const {
    const auto card = session_.backend().device();
    if (!card) return;
    const program::DeviceFacts& planned = *planned_->document.card;
    base::say("outside the arenas on the card after {}: {} of {} planned", after,
              plan::readable_bytes(card->outside_bytes),
              plan::readable_bytes(planned.outside_bytes + planned.reserved_bytes));
  }

  void say_read(const runtime::LoadReport& report) {
    add_weights(state_.identity, report.digest);
    const double gigabytes = static_cast<double>(report.bytes_read) / 1e9;
    base::say("read {:.2f} GB of weights in {:.2f} s ({:.2f} GB/s){}", gigabytes, report.seconds,
              gigabytes / report.seconds,
              planned_->spec.quantization && !model_.config.stored ? ", quantised on the way" : "");
  }

  // Of the evaluations of this run.
  BestRule best_rule() const {
    std::vector<std::string> sets;
    for (const EvaluationSet& set : data_.evaluation) sets.push_back(set.name);
    const std::vector<std::string> measures = evaluation_measures(
        recipe_, data_.rewards ? data_.rewards->names() : std::vector<std::string>());
    return best_rule_of(
        recipe_, evaluation_keys(sets, measures_of_all(methods::objective_of(recipe_.objective)),
                                 std::vector<std::string_view>(measures.begin(), measures.end())));
  }

  // Before anything large is allocated: another run's checkpoint is refused, and so is a metric
  // that no evaluation gives.
  void identify() {
    best_rule_ = best_rule();
    take_rule(best_rule_, state_.history);
    state_.seed = recipe_.seed;
    state_.max_steps = length_.steps;
    state_.identity = identity_of(recipe_, model_, data_.training->rows);
    state_.identity.fixed["compute_dtype"] = planned_->document.compute_dtype;
    state_.identity.free["backend"] = session_.backend().name();
    state_.identity.free["library"] = session_.backend().library_versions();
    ranks_.require_same(agreed_values());
    state_.rows_per_step = step_rows(recipe_).step;
    if (folder_.checkpoint)
      check_checkpoint(folder_, recipe_, state_.identity, data_.training->rows);
  }

  // What all ranks must have found in their files, and compute with, alike.
  std::vector<comm::NamedValue> agreed_values() const {
    std::vector<comm::NamedValue> values;
    if (ranks_.size() > 1 && recipe_.init != formats::Init::random)
      values.push_back({"the files of the model", files_fingerprint(model_.folder, "model")});
    if (ranks_.size() > 1 && is_adapted() && !recipe_.adapter.empty())
      values.push_back({"the adapter", files_fingerprint(recipe_.adapter, "adapter_model")});
    for (comm::NamedValue& value : data_.evaluation_fingerprints())
      values.push_back(std::move(value));
    for (const auto& [name, value] : state_.identity.fixed) values.push_back({name, value});
    for (const auto& [name, value] : state_.identity.free) values.push_back({name, value});
    return values;
  }

  void restore() {
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

  // A run knows its best, unless it is ranked otherwise now, or the folder went.
  void take_history() {
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

  // In the run's folder, or next to the checkpoint of another folder that it goes on from.
  fs::path best_checkpoint() const {
    const int64_t step = state_.history.best_checkpoint;
    fs::path path = runtime::checkpoint_path(folder_.path, step);
    if (folder_.checkpoint && !fs::exists(path))
      return runtime::checkpoint_path(fs::weakly_canonical(*folder_.checkpoint).parent_path(),
                                      step);
    return path;
  }

  runtime::CheckpointOptions checkpoint_options(const fs::path& output_dir) const {
    runtime::CheckpointOptions options;
    options.output_dir = output_dir;
    options.model = model_;
    if (is_adapted())
      options.adapter = runtime::adapter_config(recipe_, model_.config, planned_->job);
    options.chat = data_.chat;
    options.save_total_limit = recipe_.save_total_limit;
    return options;
  }

  int64_t steps_in(double said) const { return formats::steps_in(said, length_.steps); }

  // Of what an evaluation generated, some is shown.
  void show_answers(const EvaluatedAnswers& answers, int64_t step) {
    if (!measured_.answers_seconds) answers.say_speed(planned_->rates);
    measured_.answers_seconds = answers.seconds();
    if (seen_) seen_->add_samples(step, answers.samples(), answers.sample_names(), "eval/samples");
  }

  // Null where evaluations ask for none.
  std::unique_ptr<EvaluatedAnswers> evaluated_answers() {
    const plan::TrainingSpec& spec = planned_->spec;
    if (data_.evaluation.empty() || !spec.generation) return nullptr;
    if (spec.rollouts)
      return std::make_unique<EvaluatedRewards>(data_.evaluation, recipe_, spec, *data_.tokenizer,
                                                *data_.rewards, session_.executor(), ranks_);
    return std::make_unique<GeneratedAnswers>(data_.evaluation, recipe_, spec, *data_.tokenizer,
                                              session_.executor());
  }

  // What ended a run too early stands on its page too.
  TrainerOutcome train_and_report(const StopSignal& signal) {
    if (!ranks_.is_first()) return train(signal);
    seen_.emplace(*planned_, recipe_,
                  SeenPlace{folder_.path, length_.steps,
                            folder_.goes_on ? std::optional(state_.step) : std::nullopt});
    try {
      return train(signal);
    } catch (const base::UserError& error) {
      if (!folder_.lock || folder_.lock->is_in_place())
        seen_->stop(fmt::format("stopped: {}", error.what()));
      throw;
    }
  }

  std::unique_ptr<StepData> step_data() {
    const plan::TrainingSpec& spec = planned_->spec;
    if (spec.rollouts)
      return std::make_unique<AnswerSteps>(
          recipe_, spec, data_.prompts, data_.training->rows, *data_.tokenizer, *data_.rewards,
          session_.executor(), ranks_, [this](int64_t step, const Rollouts& rollouts) {
            if (seen_)
              seen_->add_samples(step, rollouts.samples(), rollouts.names(), "train/samples");
          });
    loader_.emplace(data_.training->rows, spec.rows, spec.row_tokens, session_.executor(),
                    data_.training->reference);
    return std::make_unique<DocumentSteps>(
        *loader_, DocumentSteps::Sizes{spec.rows, spec.accumulation, ranks_.size(), ranks_.rank()});
  }

  TrainerOutcome train(const StopSignal& signal) {
    std::optional<Evaluation> evaluation;
    const std::unique_ptr<EvaluatedAnswers> answers = evaluated_answers();
    const TrainerOptions options{
        .total_steps = length_.steps,
        .end_row = length_.end_row,
        .update_in_backward = planned_->spec.update_in_backward,
        .router_loss_factor = planned_->spec.model.router_loss_factor(),
        .logging_steps = steps_in(recipe_.logging_steps),
        .eval_strategy = recipe_.eval_strategy,
        .eval_steps = steps_in(recipe_.eval_steps),
        .eval_on_start = recipe_.eval_on_start,
        .save_strategy = recipe_.save_strategy,
        .save_steps = steps_in(recipe_.save_steps),
        .save_only_model = recipe_.save_only_model,
        .best = best_rule_,
        .guards = guard_rules_of(recipe_),
        .schedule = schedule_of(recipe_, length_.steps),
        .checkpoint = checkpoint_options(folder_.path),
        .lock = folder_.lock ? &*folder_.lock : nullptr,
        .ranks = &ranks_,
        .on_warm = [this] { say_outside("two steps"); },
        .on_evaluation =
            [&](int64_t step) {
              if (answers) show_answers(*answers, step);
            },
        .on_record = [this](std::string_view line) { seen_->follow(line); }};
    const std::unique_ptr<StepData> training = step_data();
    training->restore(state_.data);
    if (!data_.evaluation.empty())
      evaluation.emplace(data_.evaluation, planned_->spec, session_.executor(), &ranks_,
                         answers.get());
    const fs::path path = folder_.path / RunFolder::kMetrics;
    std::optional<formats::JsonLines> metrics;
    if (ranks_.is_first())
      metrics.emplace(folder_.goes_on ? resume_metrics(path, state_.step)
                                      : formats::JsonLines::create(path));
    Progress progress(state_.step, length_.steps, planned_->document.step_seconds);
    Trainer trainer(options, session_.executor(), *training, evaluation ? &*evaluation : nullptr,
                    metrics ? &*metrics : nullptr, ranks_.is_first() ? &progress : nullptr);
    return trainer.run(state_, signal.requested());
  }

  // What a second run wrote in the same place, or nobody: nothing more of this one goes there, and
  // its state, whole, to where its folder is now or to a new one.
  [[noreturn]] void leave_lost_folder() const {
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

  // The result and what was measured. The folder may go until the last file of it.
  void finish(const TrainerOutcome& outcome) {
    say_early_end(outcome);
    try {
      if (!recipe_.load_best_model_at_end || !take_best()) save_result();
      measure(outcome);
    } catch (const base::UserError&) {
      if (!folder_.lock || folder_.lock->is_in_place()) throw;
    }
    if (folder_.lock && !folder_.lock->is_in_place()) leave_lost_folder();
  }

  void say_early_end(const TrainerOutcome& outcome) const {
    if (outcome.ended_early)
      base::say(
          "the run ended after step {} of {}: {} evaluations in a row were no better than {} = "
          "{:.6g} (early_stopping_patience)",
          state_.step, length_.steps, state_.history.worse_evaluations, best_rule_.metric,
          state_.history.best_metric.value_or(std::numeric_limits<double>::quiet_NaN()));
  }

  // Restores the best checkpoint, whose state is then the run's: what is saved of it goes on from
  // there. A checkpoint of the model alone is copied instead. Whether the result is there now.
  bool take_best() {
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

  fs::path result_folder() const {
    return folder_.path / (is_adapted() ? RunFolder::kAdapter : RunFolder::kModel);
  }

  // The result is the average of what was trained, where the recipe asks for one; checkpoints hold
  // both.
  void take_average() {
    if (recipe_.ema_decay == 0) return;
    session_.executor().run(program::ProgramName::average);
    session_.executor().run(program::ProgramName::prepare);
    has_average_ = true;
    base::say("the result is the average of the weights over the steps (ema_decay={})",
              recipe_.ema_decay);
  }

  void save_result() {
    take_average();
    if (is_adapted())
      runtime::save_adapter(
          result_folder(), runtime::adapter_config(recipe_, model_.config, planned_->job),
          {model_.folder, model_.config.text_module}, session_.executor(), data_.chat);
    else
      runtime::save_model(result_folder(), model_, session_.executor(), data_.chat);
  }

  void measure(const TrainerOutcome& outcome) {
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

}  // namespace

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
