// Keys of learning from rewards.
#include "formats/recipe/recipe_table.h"

namespace snug::formats {
namespace {

constexpr double kMaxRewardSeconds = 24 * 3600;

}  // namespace

void add_reward_keys(KeyTable& table) {
  table.group("Learning from rewards", kTraining, OnResume::free);
  table
      .add<&Recipe::rewards>(
          "rewards", "",
          "grpo: what answers are rewarded for, a list of NAME:WEIGHT or a map {NAME: WEIGHT}: the "
          "scores of eval_metrics, soft_overlong:TOKENS, and exec:PROGRAM (docs/rewards.md)")
      .whole_texts()
      .pairs();
  table
      .add<&Recipe::reward_fields>(
          "reward_fields", "",
          "grpo: the field of the record that a score holds answers against, {NAME: FIELD}")
      .computed("answer, or what it is usually called")
      .pairs();
  table
      .add<&Recipe::reward_timeout>(
          "reward_timeout", "60",
          "grpo: seconds within which a program of rewards must have rewarded the answers that it "
          "was given at once")
      .range({.least = 0, .most = kMaxRewardSeconds, .least_excluded = true})
      .on_resume(OnResume::ignored);
  table
      .add_size<&Recipe::reward_memory>(
          "reward_memory", "0",
          "grpo: address space of a program of rewards, such as 2GiB; 0: no limit")
      .on_resume(OnResume::ignored);
}

}  // namespace snug::formats
