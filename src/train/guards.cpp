#include "train/guards.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string_view>

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

// A step that no answers were made for changes nothing.
bool stays_equal(std::span<const NamedMeasure> measures, RunHistory& history) {
  const auto found = std::ranges::find(measures, kEqualShareName, &NamedMeasure::name);
  if (found == measures.end()) return false;
  int64_t& count = history.generations_of_equal_rewards;
  count = found->value == 1 ? count + 1 : 0;
  return count >= kEqualGenerations;
}

std::string equal_text(int64_t step, int64_t generations) {
  return fmt::format(
      "step {}: the answers to each prompt were rewarded alike in {} generations in a row, so that "
      "nothing is learned of them. Look at the answers in samples.jsonl: where none is ever right, "
      "take easier prompts, a reward for what leads there, or a model that has seen how to answer; "
      "where all are, there is nothing left to learn; max_resamples asks other prompts. {}",
      step, generations, switched_off_by(Guard::equal_rewards));
}

}  // namespace

std::optional<std::string> watch_step(const GuardRules& rules, const StepMetrics& metrics,
                                      RunHistory& history) {
  if (!std::isfinite(metrics.loss) || !std::isfinite(metrics.grad_norm)) return std::nullopt;
  const bool has_no_loss = stays_zero(metrics.loss, metrics.step, history.steps_of_zero_loss);
  const bool has_no_norm = stays_zero(metrics.grad_norm, metrics.step, history.steps_of_zero_norm);
  const bool has_exploded = stays_above_best(rules, metrics.loss, history);
  const bool has_equal_rewards = stays_equal(metrics.of_data, history);
  if (has_equal_rewards && rules.has(Guard::equal_rewards))
    return equal_text(metrics.step, history.generations_of_equal_rewards);
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

std::optional<std::string> watch_evaluation(const GuardRules& rules, double loss, int64_t step,
                                            bool is_last, RunHistory& history) {
  if (!std::isfinite(loss)) {
    if (!rules.has(Guard::not_finite)) return std::nullopt;
    return fmt::format(
        "step {}: the loss of the evaluation is {}. Look for broken records in eval_data, and "
        "lower learning_rate. {}",
        step, loss, switched_off_by(Guard::not_finite));
  }
  if (step == 0) {
    history.start_evaluation = loss;
    return std::nullopt;
  }
  const bool is_worse = history.start_evaluation && loss > *history.start_evaluation;
  history.evaluations_above_start = is_worse ? history.evaluations_above_start + 1 : 0;
  const bool stops = history.evaluations_above_start >= kWorseEvaluations || (is_worse && is_last);
  if (!stops || !rules.has(Guard::worse_evaluation)) return std::nullopt;
  return fmt::format(
      "step {}: the loss of the evaluation is {:.4f}{}, and was {:.4f} before the first step. "
      "Lower "
      "learning_rate, train fewer steps, and look whether data and eval_data are of one kind and "
      "form (snug audit). {}",
      step, loss,
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
         history.steps_of_zero_loss == 0 && history.steps_of_zero_norm == 0;
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
