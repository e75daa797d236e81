#include "train/rewards/evaluated_rewards.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "train/rewards/answer_metrics.h"
#include "train/rewards/rollouts.h"

namespace snug::train {
namespace {

double value_of(std::span<const NamedMeasure> measures, std::string_view name) {
  const auto found = std::ranges::find(measures, name, &NamedMeasure::name);
  return found == measures.end() ? std::numeric_limits<double>::quiet_NaN() : found->value;
}

}  // namespace

EvaluatedRewards::EvaluatedRewards(std::span<const EvaluationSet> sets,
                                   const formats::Recipe& recipe, const plan::TrainingSpec& spec,
                                   const text::Tokenizer& tokenizer, RewardFunctions& rewards,
                                   runtime::Executor& executor, const runtime::Ranks& ranks)
    : sets_(sets),
      recipe_(recipe),
      spec_(spec),
      tokenizer_(tokenizer),
      rewards_(rewards),
      executor_(executor),
      ranks_(ranks),
      names_(evaluated_measures(rewards.names())),
      figures_(sets.size()) {
  SNUG_CHECK(spec.rollouts.has_value(), "the job makes no answers that are rewarded");
}

void EvaluatedRewards::run() {
  samples_.clear();
  seconds_ = 0;
  for (size_t set = 0; set < sets_.size(); ++set) {
    Rollouts rollouts(recipe_, spec_, sets_[set].prompts, tokenizer_, rewards_, executor_, ranks_);
    rollouts.evaluate();
    figures_[set].clear();
    figures_[set].reserve(names_.size());
    for (const std::string& name : names_)
      figures_[set].push_back(value_of(rollouts.measures(), name));
    seconds_ += value_of(rollouts.measures(), kRolloutSecondsName);
    samples_.reserve(samples_.size() + rollouts.samples().size());
    for (AnswerSample sample : rollouts.samples()) {
      sample.set = sets_[set].name;
      samples_.push_back(std::move(sample));
    }
  }
}

bool EvaluatedRewards::is_shown(size_t name) const { return names_[name] == kMeanLengthName; }

}  // namespace snug::train
