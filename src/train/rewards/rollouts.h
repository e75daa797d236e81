// Answers to prompts, made by the model as it is in training, rewarded, and held against one
// another: a generation of learning from rewards. One thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "formats/recipe/recipe.h"
#include "plan/job/job.h"
#include "runtime/execution/executor.h"
#include "runtime/process/job_ranks.h"
#include "text/tokenizer/tokenizer.h"
#include "train/answer_sample.h"
#include "train/rewards/advantages.h"
#include "train/rewards/generation.h"
#include "train/rewards/prompt_reader.h"
#include "train/rewards/reward_functions.h"
#include "train/rewards/shared_answers.h"
#include "train/step_data.h"

namespace snug::train {

class Rollouts {
 public:
  // Everything must outlive the object. `spec` has rollouts, and programs that generate.
  Rollouts(const formats::Recipe& recipe, const plan::TrainingSpec& spec,
           const std::vector<RewardedPrompt>& prompts, const text::Tokenizer& tokenizer,
           RewardFunctions& rewards, runtime::Executor& executor, const runtime::Ranks& ranks);

  // The answers to these prompts (indices into all), rewarded. `number`: of the generation, from
  // which all draws follow. Prompts whose answers were all rewarded alike are replaced by others,
  // at random, as often as the spec says. What training has in memory that it shares with
  // generating is gone afterwards. All ranks call it; each makes a part of the answers, and all
  // have all of them then. Nothing: the signal came to any of them. Throws UserError where a reward
  // fails.
  std::optional<Generation> run(int64_t number, std::vector<int64_t> prompts,
                                const std::atomic<int>& stop_signal);

  // The answers to all prompts once, as many of them at a time as a generation has, without others
  // in their place: for measures() and samples(). Draws are the same each time.
  void evaluate();

  // These tell of the last run or evaluation.
  std::span<const NamedMeasure> measures() const { return measures_; }
  // Some of the answers, with what each function of names() gave.
  std::span<const AnswerSample> samples() const { return samples_; }
  const std::vector<std::string>& names() const { return rewards_.names(); }

 private:
  using Answers = std::vector<LearnedAnswer>;
  const RewardedPrompt& prompt_of(int64_t prompt) const {
    return prompts_[static_cast<size_t>(prompt)];
  }
  void begin();
  std::vector<engine::Request> requests_to(std::span<const int64_t> prompts, const RankPart& own,
                                           int64_t first_sample) const;
  std::optional<std::vector<engine::Answer>> ask(std::span<const engine::Request> requests,
                                                 const std::atomic<int>& stop_signal);
  std::optional<Answers> answers_to(std::span<const int64_t> prompts, int64_t first_sample,
                                    const std::atomic<int>& stop_signal);
  void judge(Answers& answers);
  std::vector<double> rewards_of(const Answers& answers) const;
  // The prompts of groups that are rewarded alike, by the number of their group.
  std::vector<size_t> equal_groups(const Answers& answers) const;
  std::vector<int64_t> other_prompts(int64_t number, int64_t attempt, size_t count) const;
  void set_advantages(Answers& answers) const;
  void measure(const Answers& answers, int64_t resampled);

  const formats::Recipe& recipe_;
  const plan::TrainingSpec& spec_;
  const std::vector<RewardedPrompt>& prompts_;
  const text::Tokenizer& tokenizer_;
  runtime::Executor& executor_;
  const runtime::Ranks& ranks_;
  RewardFunctions& rewards_;
  std::vector<NamedMeasure> measures_;
  std::vector<AnswerSample> samples_;
  engine::EngineTimes times_;
  double reward_seconds_ = 0;
};

}  // namespace snug::train
