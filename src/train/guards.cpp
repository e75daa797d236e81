#include "train/guards.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

#include "methods/objective.h"
#include "program/kinds/loss/grpo.h"
#include "train/rewards/answer_metrics.h"

namespace snug::train {
namespace {

using formats::Guard;
using runtime::RunHistory;

bool stays_zero(double value, int64_t step, int64_t& steps_of_zero) {
  steps_of_zero = value == 0 ? steps_of_zero + 1 : 0;
  return steps_of_zero >= kZeroSteps || (steps_of_zero > 0 && step == 1);
}

// The best is a mean over about as many steps as the loss may be above it, so that one easy batch
// does not set it.
bool stays_above_best(const GuardRules& rules, double loss, RunHistory& history) {
  if (!history.first_loss) history.first_loss = loss;
  const bool is_above = history.best_mean_loss &&
                        loss > rules.max_loss_increase * *history.best_mean_loss &&
                        loss > *history.first_loss;
  history.steps_above_best = is_above ? history.steps_above_best + 1 : 0;
  const double share = 2.0 / (static_cast<double>(rules.loss_increase_steps) + 1);
  const double before = history.mean_loss.value_or(loss);
  history.mean_loss = before + share * (loss - before);
  history.best_mean_loss =
      std::min(history.best_mean_loss.value_or(*history.mean_loss), *history.mean_loss);
  return history.steps_above_best >= rules.loss_increase_steps;
}

std::string switched_off_by(Guard guard) {
  return fmt::format("guards=no_{} switches this guard off", base::word_of(guard));
}

// A number of a step that is exactly 0.
struct Zero {
  Guard guard;
  std::string_view name;
  std::string_view advice;
};

constexpr Zero kNoLoss{
    Guard::zero_loss, "the loss",
    "so nothing is learned. Look at what carries loss (snug audit shows it: answers that were cut "
    "away, roles_to_train, train_on_prompt); where all records were learned by heart, train fewer "
    "steps"};
constexpr Zero kNoNorm{
    Guard::zero_norm, "the gradient norm",
    "so no weight changes. Look at what trains (trainable_modules, freeze_modules, "
    "target_modules), and with fp16 at gradients too small for it (compute_dtype=bf16)"};

std::string zero_text(const Zero& zero, int64_t step, int64_t steps_in_a_row) {
  return fmt::format("step {}: {} is exactly 0{}, {}. {}", step, zero.name,
                     steps_in_a_row > 1 ? fmt::format(" in {} steps in a row", steps_in_a_row) : "",
                     zero.advice, switched_off_by(zero.guard));
}

// A fault of answers: a measure that is beyond a bound in many generations in a row.
struct AnswerFault {
  Guard guard;
  std::string_view measure;
  bool (*is_beyond)(const GuardRules& rules, double measured);
  int64_t RunHistory::*in_a_row;
  // What is wrong, and what to look at.
  std::string (*text)(const GuardRules& rules, double measured, int64_t in_a_row);
};

bool are_all(const GuardRules& /*rules*/, double share) { return share == 1; }

std::string equal_text(const GuardRules& /*rules*/, double /*share*/, int64_t generations) {
  return fmt::format(
      "the answers to each prompt were rewarded alike in {} generations in a row, so that nothing "
      "is learned of them. Look at the answers in samples.jsonl: where none is ever right, take "
      "easier prompts, a reward for what leads there, or a model that has seen how to answer; "
      "where all are, there is nothing left to learn; max_resamples asks other prompts",
      generations);
}

std::string cut_text(const GuardRules& /*rules*/, double /*share*/, int64_t generations) {
  return fmt::format(
      "no answer ended by itself in {} generations in a row: all have max_completion_length "
      "tokens. Look at the answers in samples.jsonl: where they are on their way, give a longer "
      "max_completion_length; where they go on and on, lower learning_rate, reward shorter ones "
      "(soft_overlong), or take a model that has seen how answers end",
      generations);
}

std::string entropy_text(const GuardRules& rules, double entropy, int64_t generations) {
  return fmt::format(
      "the entropy of the answers' tokens was below min_entropy={} in {} generations in a row, and "
      "is {:.3g}: the answers to a prompt hardly differ, so that there is hardly anything to learn "
      "of them. Lower learning_rate, raise temperature or epsilon_high, or train fewer steps",
      rules.min_entropy, generations, entropy);
}

std::string kl_text(const GuardRules& rules, double kl, int64_t updates) {
  return fmt::format(
      "the model was further than max_kl={} from the one that training began with in {} updates in "
      "a row; its kl is {:.3g}. Lower learning_rate, raise beta, or train fewer steps",
      rules.max_kl, updates, kl);
}

constexpr std::string_view kDivergenceName = program::kRewardedMeasures.back();

constexpr AnswerFault kAnswerFaults[] = {
    {Guard::equal_rewards, kEqualShareName, are_all, &RunHistory::generations_of_equal_rewards,
     equal_text},
    {Guard::cut_answers, kCutShareName, are_all, &RunHistory::generations_of_cut_answers, cut_text},
    {Guard::low_entropy, kEntropyName,
     [](const GuardRules& rules, double entropy) { return entropy < rules.min_entropy; },
     &RunHistory::generations_of_low_entropy, entropy_text},
    {Guard::high_kl, kDivergenceName,
     [](const GuardRules& rules, double kl) { return rules.max_kl > 0 && kl > rules.max_kl; },
     &RunHistory::updates_of_high_kl, kl_text}};

// Nothing: the step has no such measure, or it is a mean over none.
std::optional<double> measured_of(const StepMetrics& metrics, std::string_view name) {
  double value = std::numeric_limits<double>::quiet_NaN();
  for (size_t i = 0; i < metrics.measure_names.size(); ++i)
    if (metrics.measure_names[i] == name) value = static_cast<double>(metrics.measures[i]);
  for (const NamedMeasure& measure : metrics.of_data)
    if (measure.name == name) value = measure.value;
  return std::isnan(value) ? std::nullopt : std::optional(value);
}

// Steps without the measure, such as those that no answers were made for, change nothing.
std::optional<std::string> count_fault(const AnswerFault& fault, const GuardRules& rules,
                                       const StepMetrics& metrics, RunHistory& history) {
  const auto measured = measured_of(metrics, fault.measure);
  if (!measured || !rules.has(fault.guard)) return std::nullopt;
  int64_t& count = history.*fault.in_a_row;
  count = fault.is_beyond(rules, *measured) ? count + 1 : 0;
  if (count < kAnswersInARow) return std::nullopt;
  return fmt::format("step {}: {}. {}", metrics.step, fault.text(rules, *measured, count),
                     switched_off_by(fault.guard));
}

}  // namespace

GuardRules guard_rules_of(const formats::Recipe& recipe) {
  return {.on = formats::guards_of(recipe).both(methods::objective_of(recipe.objective).guards),
          .max_loss_increase = recipe.max_loss_increase,
          .loss_increase_steps = recipe.loss_increase_steps,
          .min_entropy = recipe.min_entropy,
          .max_kl = recipe.max_kl};
}

std::optional<std::string> watch_step(const GuardRules& rules, const StepMetrics& metrics,
                                      RunHistory& history) {
  if (!std::isfinite(metrics.loss) || !std::isfinite(metrics.grad_norm)) return std::nullopt;
  const bool has_no_loss = stays_zero(metrics.loss, metrics.step, history.steps_of_zero_loss);
  const bool has_no_norm = stays_zero(metrics.grad_norm, metrics.step, history.steps_of_zero_norm);
  const bool has_exploded = stays_above_best(rules, metrics.loss, history);
  std::optional<std::string> of_answers;
  for (const AnswerFault& fault : kAnswerFaults)
    if (auto found = count_fault(fault, rules, metrics, history); found && !of_answers)
      of_answers = std::move(found);
  if (of_answers) return of_answers;
  if (has_no_loss && rules.has(Guard::zero_loss))
    return zero_text(kNoLoss, metrics.step, history.steps_of_zero_loss);
  if (has_no_norm && rules.has(Guard::zero_norm))
    return zero_text(kNoNorm, metrics.step, history.steps_of_zero_norm);
  if (has_exploded && rules.has(Guard::loss_increase))
    return fmt::format(
        "step {}: the loss has been above {} times its best ({:.4g}, a mean over steps) and above "
        "that of the first step ({:.4g}) for {} steps; it is {:.4g}. Lower learning_rate (now "
        "{:.2e}), lengthen the warm-up, lower max_grad_norm, or look at the data from here on. {}; "
        "max_loss_increase and loss_increase_steps are its bounds",
        metrics.step, rules.max_loss_increase, *history.best_mean_loss, *history.first_loss,
        history.steps_above_best, metrics.loss, metrics.learning_rate,
        switched_off_by(Guard::loss_increase));
  return std::nullopt;
}

std::vector<std::string> warnings_of(const GuardRules& rules, const StepMetrics& metrics,
                                     const RunHistory& history) {
  std::vector<std::string> warnings;
  for (const AnswerFault& fault : kAnswerFaults) {
    const auto measured = measured_of(metrics, fault.measure);
    const int64_t count = history.*fault.in_a_row;
    if (!measured || !rules.has(fault.guard) || count != kToldInARow) continue;
    warnings.push_back(fmt::format("warning: step {}: {}. With {} in a row the run stops; {}",
                                   metrics.step, fault.text(rules, *measured, count),
                                   kAnswersInARow, switched_off_by(fault.guard)));
  }
  return warnings;
}

std::optional<std::string> watch_evaluation(const GuardRules& rules,
                                            const EvaluationValue& evaluation, int64_t step,
                                            bool is_last, RunHistory& history) {
  const std::string_view name = evaluation.name;
  const double value = evaluation.value;
  if (!std::isfinite(value)) {
    if (!rules.has(Guard::not_finite)) return std::nullopt;
    return fmt::format(
        "step {}: the {} of the evaluation is {}. Look for broken records in eval_data, and "
        "lower learning_rate. {}",
        step, name, value, switched_off_by(Guard::not_finite));
  }
  if (step == 0) {
    history.start_evaluation = value;
    return std::nullopt;
  }
  const auto is_worse_than = [&](double start) {
    return evaluation.is_greatest ? value < start - evaluation.by_chance
                                  : value > start + evaluation.by_chance;
  };
  const bool is_worse = history.start_evaluation && is_worse_than(*history.start_evaluation);
  history.evaluations_above_start = is_worse ? history.evaluations_above_start + 1 : 0;
  const bool stops = history.evaluations_above_start >= kWorseEvaluations || (is_worse && is_last);
  if (!stops || !rules.has(Guard::worse_evaluation)) return std::nullopt;
  return fmt::format(
      "step {}: the {} of the evaluation is {:.4f}{}, and was {:.4f} before the first step. Lower "
      "learning_rate, train fewer steps, and look whether data and eval_data are of one kind and "
      "form (snug audit). {}",
      step, name, value,
      history.evaluations_above_start > 1
          ? fmt::format(", worse than at the start {} times in a row",
                        history.evaluations_above_start)
          : "",
      *history.start_evaluation, switched_off_by(Guard::worse_evaluation));
}

std::string idle_adapter_text(int64_t step) {
  return fmt::format(
      "step {}: every B of the adapter is still exactly 0 after the warm-up, so the adapter "
      "changes "
      "nothing. Look at learning_rate and its schedule, and at target_modules. {}",
      step, switched_off_by(Guard::idle_adapter));
}

bool is_sound(const RunHistory& history) {
  return history.steps_above_best == 0 && history.evaluations_above_start == 0 &&
         history.steps_of_zero_loss == 0 && history.steps_of_zero_norm == 0 &&
         history.generations_of_cut_answers == 0 && history.generations_of_low_entropy == 0 &&
         history.updates_of_high_kl == 0;
}

base::UserError stopped_by_guard(const std::string& what, const RunHistory& history) {
  const std::string advice =
      history.sound_checkpoint > 0
          ? fmt::format("The last sound checkpoint is that of step {}", history.sound_checkpoint)
          : std::string("No sound checkpoint was saved before");
  return base::UserError(fmt::format("{}. The run stopped without saving. {}", what, advice), {},
                         kGuardExitCode);
}

}  // namespace snug::train
