// Evaluations of a run that learns from rewards: as in training, and with its numbers of answers
// and its sampling, the model answers every prompt of the evaluation data, and the same functions
// reward the answers. Draws follow from the seed and the answer's number in its set, so that they
// are the same in every evaluation. One thread.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "formats/recipe/recipe.h"
#include "plan/job/job.h"
#include "runtime/execution/executor.h"
#include "runtime/process/job_ranks.h"
#include "text/tokenizer/tokenizer.h"
#include "train/data.h"
#include "train/evaluated_answers.h"
#include "train/rewards/reward_functions.h"

namespace snug::train {

class EvaluatedRewards : public EvaluatedAnswers {
 public:
  // Requires sets with prompts, and a spec with rollouts. Everything must outlive the object.
  EvaluatedRewards(std::span<const EvaluationSet> sets, const formats::Recipe& recipe,
                   const plan::TrainingSpec& spec, const text::Tokenizer& tokenizer,
                   RewardFunctions& rewards, runtime::Executor& executor,
                   const runtime::Ranks& ranks);

  // All ranks call it. Throws UserError where a reward fails.
  void run() override;

  const std::vector<std::string>& names() const override { return names_; }
  bool is_shown(size_t name) const override;
  std::vector<double> figures(size_t set) const override { return figures_[set]; }
  std::vector<AnswerSample> samples() const override { return samples_; }
  const std::vector<std::string>& sample_names() const override { return rewards_.names(); }
  double seconds() const override { return seconds_; }

 private:
  std::span<const EvaluationSet> sets_;
  const formats::Recipe& recipe_;
  const plan::TrainingSpec& spec_;
  const text::Tokenizer& tokenizer_;
  RewardFunctions& rewards_;
  runtime::Executor& executor_;
  const runtime::Ranks& ranks_;
  std::vector<std::string> names_;
  std::vector<std::vector<double>> figures_;  // of each set, for each name
  std::vector<AnswerSample> samples_;
  double seconds_ = 0;
};

}  // namespace snug::train
