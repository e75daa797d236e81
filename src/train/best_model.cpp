#include "train/best_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "formats/recipe/evaluation_keys.h"

namespace snug::train {
namespace {

// False for NaN.
bool is_better(const BestRule& rule, double metric, const std::optional<double>& than) {
  if (!than) return !std::isnan(metric);
  return rule.is_greatest ? metric > *than : metric < *than;
}

}  // namespace

std::string BestRule::name() const {
  return ranks() ? fmt::format("{} {}", is_greatest ? "greatest" : "least", metric) : "";
}

BestRule best_rule_of(const formats::Recipe& recipe, std::span<const std::string> keys) {
  BestRule rule;
  const std::string& said = recipe.metric_for_best_model;
  if (said.empty()) return rule;
  rule.metric = said.starts_with("eval_") ? said : "eval_" + said;
  if (std::ranges::find(keys, rule.metric) == keys.end())
    recipe.fail(
        "metric_for_best_model",
        fmt::format("is {}, which no evaluation of this run gives; they give {} (eval_metrics with "
                    "eval_generate adds figures of generated answers)",
                    said, fmt::join(keys, ", ")));
  rule.is_greatest = recipe.greater_is_better.value_or(!formats::is_least_best(rule.metric));
  rule.patience = recipe.early_stopping_patience;
  rule.threshold = recipe.early_stopping_threshold;
  return rule;
}

bool take_rule(const BestRule& rule, runtime::RunHistory& history) {
  const bool was_ranked = !history.ranked_by.empty();
  if (history.ranked_by == rule.name()) return false;
  history.ranked_by = rule.name();
  history.best_metric.reset();
  history.best_saved_metric.reset();
  history.worse_evaluations = 0;
  history.best_checkpoint = 0;
  return was_ranked;
}

bool count_evaluation(const BestRule& rule, double metric, runtime::RunHistory& history) {
  const std::optional<double> best = history.best_metric;
  const bool is_best = is_better(rule, metric, best);
  const bool is_gain = !best || (is_best && std::abs(metric - *best) > rule.threshold);
  history.worse_evaluations = is_gain ? 0 : history.worse_evaluations + 1;
  if (is_best) history.best_metric = metric;
  return is_best;
}

bool is_out_of_patience(const BestRule& rule, const runtime::RunHistory& history) {
  return rule.patience > 0 && history.worse_evaluations >= rule.patience;
}

void count_checkpoint(const BestRule& rule, double metric, int64_t step,
                      runtime::RunHistory& history) {
  if (!is_better(rule, metric, history.best_saved_metric)) return;
  history.best_saved_metric = metric;
  history.best_checkpoint = step;
}

}  // namespace snug::train
