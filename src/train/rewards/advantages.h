// How much better than the other answers to the same prompt each answer was rewarded, as TRL's
// GRPOTrainer and RLOOTrainer have it. Pure functions. Answers to one prompt lie next to one
// another, `group` of them. A reward that is no number is none: such an answer is left out of all
// means, and its advantage is 0.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "formats/recipe/choices.h"

namespace snug::train {

using formats::ScaleRewards;

// Deviations up to this are those of equal rewards, of which only roundings are left.
inline constexpr double kEqualRewards = 1e-8;

// The mean of what are numbers, and their deviation with one degree of freedom less; no numbers
// where there are too few.
double mean_of_rewards(std::span<const double> rewards);
double deviation_of_rewards(std::span<const double> rewards);

// The sums (answers) of what each answer was given, `rewards` (answers, functions), by weights
// (functions). What a function does not say is left out; no number where none says anything.
std::vector<double> weighted_rewards(std::span<const double> rewards,
                                     std::span<const double> weights);

// (answers): the distance from the group's mean, divided by the deviation + 1e-4.
std::vector<double> group_advantages(std::span<const double> rewards, int64_t group,
                                     ScaleRewards scale);

// (answers): the distance from the mean of the group's other answers (RLOO, Ahmadian et al. 2024).
std::vector<double> leave_one_out_advantages(std::span<const double> rewards, int64_t group);

}  // namespace snug::train
