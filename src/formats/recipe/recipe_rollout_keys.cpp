// Keys of answers that a run makes itself and learns from, with the names of TRL's GRPOTrainer.
#include "formats/recipe/recipe_table.h"

namespace snug::formats {
namespace {

constexpr double kMostAnswers = 1 << 20;

}  // namespace

void add_rollout_keys(KeyTable& table) {
  table.group("Learning from rewards", kTraining, OnResume::free);
  table
      .add<&Recipe::num_generations>("num_generations", "8",
                                     "grpo: answers to each prompt, which are held against one "
                                     "another")
      .range({.least = 2, .most = kMostAnswers})
      .on_resume(OnResume::fixed);
  table
      .add<&Recipe::max_completion_length>("max_completion_length", "512",
                                           "grpo: the most tokens of an answer")
      .range({.least = 1, .most = kMaxTokens})
      .on_resume(OnResume::fixed);
  table
      .add<&Recipe::steps_per_generation>(
          "steps_per_generation", "0",
          "grpo: micro-batches whose answers are made at once, a multiple of "
          "gradient_accumulation_steps, so that several updates share the answers of one model; "
          "0: those of one update")
      .range({.least = 0, .most = kMostAnswers})
      .on_resume(OnResume::fixed);
  table
      .add<&Recipe::num_iterations>("num_iterations", "1",
                                    "grpo: how often each answer is learned from")
      .range({.least = 1, .most = kMostAnswers})
      .on_resume(OnResume::fixed);
  table
      .add<&Recipe::epsilon>("epsilon", "0.2",
                             "grpo: how far below 1 the ratio to the model that made an answer "
                             "counts, and how far above 1 where epsilon_high is 0")
      .range({.least = 0, .most = kMaxFloat});
  table
      .add<&Recipe::epsilon_high>("epsilon_high", "0",
                                  "grpo: how far above 1 the ratio counts (0.28 in DAPO); 0: "
                                  "epsilon")
      .range({.least = 0, .most = kMaxFloat});
  table
      .add<&Recipe::delta>("delta", "0",
                           "grpo: the largest ratio that counts whatever the advantage is, above "
                           "1 + epsilon_high; 0: none")
      .range({.least = 0, .most = kMaxFloat});
  table
      .add<&Recipe::scale_rewards>("scale_rewards", ScaleRewards::group,
                                   "grpo: what the distance of a reward from its group's mean is "
                                   "divided by: the deviation of "
                                   "the group's rewards or of all rewards, or nothing")
      .translations({{"true", "group"}, {"false", "none"}});
  table.add<&Recipe::advantage>(
      "advantage", Advantage::group,
      "grpo: what a reward is held against: the mean of all answers to its prompt, or of the "
      "others (rloo)");
  table.add<&Recipe::importance_sampling_level>(
      "importance_sampling_level", ImportanceLevel::token,
      "grpo: whether each token has its ratio, or all tokens of an answer have one (sequence, as "
      "in GSPO)");
  table.add<&Recipe::mask_truncated_completions>(
      "mask_truncated_completions", "false",
      "grpo: answers that did not end within max_completion_length are not learned from");
  table
      .add<&Recipe::top_entropy_quantile>(
          "top_entropy_quantile", "1",
          "grpo: share of the tokens that are learned, those at which the model was least certain; "
          "1: all")
      .range({.least = 0, .most = 1, .least_excluded = true});
  table.add<&Recipe::old_logprobs>(
      "old_logprobs", OldLogProbabilities::automatic,
      "grpo: where the log-probabilities come from that later updates on the same answers are held "
      "against: from making them, or from the training forward pass (recompute); auto: recompute "
      "where the two compute differently");
  table
      .add<&Recipe::max_resamples>("max_resamples", "0",
                                   "grpo: how often prompts whose answers were all rewarded alike "
                                   "are replaced by others, so that there is something to learn "
                                   "(dynamic sampling, as in DAPO); 0: never")
      .aliases({"max_num_gen_batches"})
      .range({.least = 0, .most = 1000});
}

}  // namespace snug::formats
