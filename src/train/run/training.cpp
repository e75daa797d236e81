// The steps of a run: what they train on, what evaluations ask, and what is recorded.
#include <fmt/format.h>

#include <utility>

#include "plan/spec/generation_spec.h"
#include "train/document_steps.h"
#include "train/evaluation.h"
#include "train/generated_answers.h"
#include "train/guards.h"
#include "train/resume_metrics.h"
#include "train/rewards/answer_steps.h"
#include "train/rewards/evaluated_rewards.h"
#include "train/run/run.h"

namespace snug::train {

namespace fs = std::filesystem;

void Run::show_answers(const EvaluatedAnswers& answers, int64_t step) {
  if (!measured_.answers_seconds) answers.say_speed(planned_->rates);
  measured_.answers_seconds = answers.seconds();
  if (seen_) seen_->add_samples(step, answers.samples(), answers.sample_names(), "eval/samples");
}

std::unique_ptr<EvaluatedAnswers> Run::evaluated_answers() {
  const plan::TrainingSpec& spec = planned_->spec;
  if (data_.evaluation.empty() || !spec.generation) return nullptr;
  if (spec.rollouts)
    return std::make_unique<EvaluatedRewards>(data_.evaluation, recipe_, spec, *data_.tokenizer,
                                              *data_.rewards, session_.executor(), ranks_);
  return std::make_unique<GeneratedAnswers>(data_.evaluation, recipe_, spec, *data_.tokenizer,
                                            session_.executor());
}

TrainerOutcome Run::train_and_report(const StopSignal& signal) {
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

std::unique_ptr<StepData> Run::step_data() {
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

TrainerOutcome Run::train(const StopSignal& signal) {
  std::optional<Evaluation> evaluation;
  const std::unique_ptr<EvaluatedAnswers> answers = evaluated_answers();
  const TrainerOptions options{.total_steps = length_.steps,
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

}  // namespace snug::train
