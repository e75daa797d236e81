// Evaluates the sets of a run with the programs of its training job: what each set's records lose,
// or, of an objective that makes answers, what answers to its prompts are rewarded; and all of them
// together. One thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "methods/objective.h"
#include "runtime/execution/executor.h"
#include "runtime/process/job_ranks.h"
#include "train/batch_loader.h"
#include "train/data.h"
#include "train/evaluated_answers.h"
#include "train/evaluation_names.h"
#include "train/guards.h"
#include "train/progress.h"

namespace snug::train {

struct EvaluationMetric {
  std::string key;
  double value = 0;
};

class Evaluation {
 public:
  // Requires at least one set, all with rows of `spec`. `ranks`: null: one alone; several divide
  // the rows of each set. `answers`: of the same sets; null: none are generated, which an objective
  // that makes answers cannot be without. Everything must outlive the object.
  Evaluation(std::span<const EvaluationSet> sets, const plan::TrainingSpec& spec,
             runtime::Executor& executor, const runtime::Ranks* ranks,
             EvaluatedAnswers* answers = nullptr);

  // Evaluates all sets, with the weights as they are. On several ranks all must call it.
  void run();

  // These tell of the last run. The loss of a set is the mean over its targets; of an objective
  // that compares answers, what that objective makes of the set's records; of one that makes
  // answers there is their mean reward in its place. The loss of all sets is the mean over all
  // targets, or records.
  double loss() const;
  double loss(size_t set) const { return scores_[set].loss; }
  // That, as guards look at it.
  EvaluationValue judged() const;
  // What metrics.jsonl has of it, by its keys (evaluation_keys): eval_loss; for one set what the
  // objective measures of it and what its answers score, as eval_MEASURE; for several
  // eval_NAME_loss and eval_NAME_MEASURE of each. Next to a loss of tokens stands the perplexity. A
  // mean over none is left out.
  std::vector<EvaluationMetric> metrics() const;
  // The value of one of them; NaN where it is left out.
  double metric(std::string_view key) const;
  // A line of metrics.jsonl with all of them.
  std::string json(int64_t step) const;
  // A line for the terminal, of the losses and of what answers score.
  std::string text(int64_t step) const;

 private:
  struct Scores {
    double loss = 0;
    double weight = 0;          // in the mean over all sets: targets, or records
    double standard_error = 0;  // of a reward
    std::array<double, StepMetrics::kMaxMeasures> measures{};
  };
  Scores scores_of_set();
  Scores scores_of_answers(size_t set) const;
  std::string_view head() const { return measures_of_all(objective_).front(); }
  std::span<const std::string_view> measure_names() const {
    return methods::measures_of_evaluation(objective_);
  }

  std::span<const EvaluationSet> sets_;
  runtime::Executor& executor_;
  const methods::Objective& objective_;
  const runtime::Ranks* ranks_;
  EvaluatedAnswers* answers_;
  int64_t rows_;                         // of a micro-batch
  std::optional<BatchLoader> loader_{};  // of the set that is evaluated, where sets have losses
  std::vector<Scores> scores_;
};

}  // namespace snug::train
