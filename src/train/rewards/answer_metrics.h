// What is reported of a set of answers that were generated and rewarded, under TRL's names. Pure
// functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "train/rewards/advantages.h"
#include "train/step_data.h"

namespace snug::train {

// What the functions gave: rewards (answers, functions), no number where one says nothing, the
// functions' names, and their weights in the sum.
struct GivenRewards {
  std::span<const double> rewards{};
  std::span<const std::string> names{};
  std::span<const double> weights{};
  int64_t group = 1;  // answers to one prompt, which lie next to one another
};

inline constexpr std::string_view kEqualShareName = "frac_reward_zero_std";
inline constexpr std::string_view kCutShareName = "completions/clipped_ratio";
inline constexpr std::string_view kMeanLengthName = "completions/mean_length";
inline constexpr std::string_view kEntropyName = "entropy";
inline constexpr std::string_view kRolloutSecondsName = "rollout_seconds";
inline constexpr std::string_view kStandardErrorName = "reward_stderr";

// rewards/NAME/mean and rewards/NAME/std of each function; reward, reward_std of the weighted sums;
// frac_reward_zero_std: the share of the answers whose group (with `scale` batch: all together) has
// equal rewards, from which nothing is learned.
std::vector<NamedMeasure> reward_metrics(const GivenRewards& given, ScaleRewards scale);

// completions/{mean,min,max}_length in tokens; completions/clipped_ratio: the share that did not
// end; completions/{mean,min,max}_terminated_length: of those that did, 0 where none did. `lengths`
// has the tokens of each answer, `ended` whether it came to its end. There is at least one answer.
std::vector<NamedMeasure> length_metrics(std::span<const int64_t> lengths,
                                         const std::vector<bool>& ended);

// The standard error of the mean of `rewards` (answers) over prompts that might have been others,
// where `group` answers to a prompt lie next to one another; no number for a single prompt.
double standard_error_of(std::span<const double> rewards, int64_t group);

// The names of what an evaluation measures, of functions with these names.
std::vector<std::string> evaluated_measures(std::span<const std::string> functions);

}  // namespace snug::train
