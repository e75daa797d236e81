#include "train/evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/error.h"
#include "program/ir/tensor_names.h"
#include "train/micro_batch.h"
#include "train/rewards/answer_metrics.h"

namespace snug::train {
namespace {

using program::ProgramName;

const EvaluationSet& first_of(std::span<const EvaluationSet> sets) {
  SNUG_CHECK(!sets.empty(), "no evaluation sets");
  return sets.front();
}

// JSON has no NaN or infinity. A score's name may hold a pattern with anything in it.
void append_score(std::string& line, std::string_view key, double value) {
  line += fmt::format(",{}:{}", nlohmann::json(key).dump(),
                      std::isfinite(value) ? fmt::format("{}", value) : "null");
}

}  // namespace

Evaluation::Evaluation(std::span<const EvaluationSet> sets, const plan::TrainingSpec& spec,
                       runtime::Executor& executor, const runtime::Ranks* ranks,
                       EvaluatedAnswers* answers)
    : sets_(sets),
      executor_(executor),
      objective_(methods::objective_of(executor.job().objective.kind)),
      ranks_(ranks),
      answers_(answers),
      rows_(spec.rows),
      scores_(sets.size()) {
  const EvaluationSet& first = first_of(sets);
  SNUG_CHECK(answers != nullptr || !objective_.makes_answers, "nobody asks for answers");
  if (!objective_.makes_answers)
    loader_.emplace(first.source->rows, spec.rows, spec.row_tokens, executor);
}

void Evaluation::run() {
  for (size_t set = 0; loader_ && set < sets_.size(); ++set) {
    DataSource& source = *sets_[set].source;
    loader_->read_from(source.rows, source.reference);
    scores_[set] = scores_of_set();
  }
  if (answers_ != nullptr) answers_->run();
  for (size_t set = 0; !loader_ && set < sets_.size(); ++set) scores_[set] = scores_of_answers(set);
}

Evaluation::Scores Evaluation::scores_of_answers(size_t set) const {
  const std::vector<double> figures = answers_->figures(set);
  const auto figure = [&](std::string_view name) {
    const auto found = std::ranges::find(answers_->names(), name);
    SNUG_CHECK(found != answers_->names().end(), "answers are not judged by {}", name);
    return figures[static_cast<size_t>(found - answers_->names().begin())];
  };
  return {.loss = figure(head()),
          .weight = static_cast<double>(sets_[set].source->dataset.documents.size()),
          .standard_error = figure(kStandardErrorName)};
}

Evaluation::Scores Evaluation::scores_of_set() {
  const int64_t rank = ranks_ == nullptr ? 0 : ranks_->rank();
  const int64_t ranks = ranks_ == nullptr ? 1 : ranks_->size();
  const int64_t rows = loader_->rows_per_epoch();
  const methods::RowCounts counts = loader_->count(0, rows);
  set_inputs(executor_,
             objective_.is_token_mean ? methods::RowCounts{.trained_tokens = 1} : counts);
  Scores scores;
  std::array<float, StepMetrics::kMaxMeasures> measures{};
  for (int64_t row = 0; row < rows; row += rows_ * ranks) {
    loader_->load(ProgramName::evaluate, row + rank * rows_, rows);
    run_batch(executor_, ProgramName::evaluate);
    scores.loss += executor_.result<float>(program::kLossName);
    read_measures(executor_, std::span(measures).first(measure_names().size()));
    for (size_t i = 0; i < measures.size(); ++i)
      scores.measures[i] += static_cast<double>(measures[i]);
  }
  const auto divisor = static_cast<double>(
      objective_.is_token_mean ? std::max<int64_t>(1, counts.trained_tokens) : 1);
  scores.loss /= divisor;
  for (double& measure : scores.measures) measure /= divisor;
  scores.weight =
      static_cast<double>(objective_.is_token_mean ? counts.trained_tokens : counts.groups);
  return scores;
}

double Evaluation::loss() const {
  // To the bit, which a product and a quotient would not keep.
  if (scores_.size() == 1) return scores_[0].loss;
  double sum = 0;
  double weight = 0;
  for (const Scores& scores : scores_) {
    sum += scores.weight * scores.loss;
    weight += scores.weight;
  }
  return sum / std::max(1.0, weight);
}

// Rewards of other answers, and of other prompts, would be others.
EvaluationValue Evaluation::judged() const {
  if (loader_) return {.name = head(), .value = loss()};
  double sum = 0;
  double weight = 0;
  for (const Scores& scores : scores_) {
    sum += std::pow(scores.weight * scores.standard_error, 2);
    weight += scores.weight;
  }
  const double error = std::sqrt(sum) / weight;
  return {.name = head(),
          .value = loss(),
          .is_greatest = true,
          .by_chance = std::isfinite(error) ? 2 * error : 0};
}

std::vector<EvaluationMetric> Evaluation::metrics() const {
  std::vector<EvaluationMetric> all;
  const auto add_loss = [&](std::string_view set, double loss) {
    all.push_back({evaluation_key(set, head()), loss});
    if (objective_.is_token_mean)
      all.push_back({evaluation_key(set, kPerplexityMeasure), std::exp(loss)});
  };
  add_loss("", loss());
  for (size_t set = 0; set < sets_.size(); ++set) {
    const std::string_view name = sets_.size() > 1 ? std::string_view(sets_[set].name) : "";
    if (!name.empty()) add_loss(name, scores_[set].loss);
    for (size_t i = 0; loader_ && i < measure_names().size(); ++i)
      if (!std::isnan(scores_[set].measures[i]))
        all.push_back({evaluation_key(name, measure_names()[i]), scores_[set].measures[i]});
    if (answers_ == nullptr) continue;
    const std::vector<double> figures = answers_->figures(set);
    for (size_t i = 0; i < figures.size(); ++i)
      if (answers_->names()[i] != head() && !std::isnan(figures[i]))
        all.push_back({evaluation_key(name, answers_->names()[i]), figures[i]});
  }
  return all;
}

double Evaluation::metric(std::string_view key) const {
  for (const EvaluationMetric& metric : metrics())
    if (metric.key == key) return metric.value;
  return std::numeric_limits<double>::quiet_NaN();
}

std::string Evaluation::json(int64_t step) const {
  std::string line = fmt::format("{{\"step\":{}", step);
  for (const EvaluationMetric& metric : metrics()) append_score(line, metric.key, metric.value);
  return line + "}";
}

std::string Evaluation::text(int64_t step) const {
  std::string line = fmt::format("step {} {} {:.4f}", step, evaluation_key("", head()), loss());
  for (size_t set = 0; set < sets_.size(); ++set) {
    const std::string_view name = sets_.size() > 1 ? std::string_view(sets_[set].name) : "";
    if (!name.empty())
      line += fmt::format(" {} {:.4f}", evaluation_key(name, head()), scores_[set].loss);
    if (answers_ == nullptr) continue;
    const std::vector<double> figures = answers_->figures(set);
    for (size_t i = 0; i < figures.size(); ++i)
      if (answers_->is_shown(i))
        line += fmt::format(" {} {:.4f}", evaluation_key(name, answers_->names()[i]), figures[i]);
  }
  return line;
}

}  // namespace snug::train
