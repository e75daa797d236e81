#include "train/rewards/advantages.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"

namespace snug::train {
namespace {

constexpr double kNoReward = std::numeric_limits<double>::quiet_NaN();
// Keeps groups whose rewards are nearly the same from advantages without bounds.
constexpr double kLeastDeviation = 1e-4;

double number_or_zero(double advantage) { return std::isnan(advantage) ? 0.0 : advantage; }

// How many are numbers, and their sum.
struct Numbers {
  double count = 0;
  double sum = 0;
};

Numbers numbers_of(std::span<const double> rewards) {
  Numbers numbers;
  for (const double reward : rewards) {
    if (std::isnan(reward)) continue;
    numbers.count += 1;
    numbers.sum += reward;
  }
  return numbers;
}

// Calls f(rewards of a group, index of its first answer) for each group.
template <typename F>
void for_each_group(std::span<const double> rewards, int64_t group, F&& f) {
  const auto size = static_cast<size_t>(group);
  SNUG_CHECK(group > 0 && rewards.size() % size == 0, "{} answers in groups of {}", rewards.size(),
             group);
  for (size_t first = 0; first < rewards.size(); first += size)
    f(rewards.subspan(first, size), first);
}

}  // namespace

double mean_of_rewards(std::span<const double> rewards) {
  const Numbers numbers = numbers_of(rewards);
  return numbers.count > 0 ? numbers.sum / numbers.count : kNoReward;
}

double deviation_of_rewards(std::span<const double> rewards) {
  const Numbers numbers = numbers_of(rewards);
  if (numbers.count < 2) return kNoReward;
  const double mean = numbers.sum / numbers.count;
  double squares = 0;
  for (const double reward : rewards)
    if (!std::isnan(reward)) squares += (reward - mean) * (reward - mean);
  return std::sqrt(squares / (numbers.count - 1));
}

std::vector<double> weighted_rewards(std::span<const double> rewards,
                                     std::span<const double> weights) {
  SNUG_CHECK(!weights.empty() && rewards.size() % weights.size() == 0, "{} rewards by {} functions",
             rewards.size(), weights.size());
  std::vector<double> sums(rewards.size() / weights.size(), kNoReward);
  for (size_t i = 0; i < rewards.size(); ++i) {
    if (std::isnan(rewards[i])) continue;
    double& sum = sums[i / weights.size()];
    sum = number_or_zero(sum) + weights[i % weights.size()] * rewards[i];
  }
  return sums;
}

std::vector<double> group_advantages(std::span<const double> rewards, int64_t group,
                                     ScaleRewards scale) {
  std::vector<double> advantages(rewards.size());
  const double of_batch = deviation_of_rewards(rewards);
  for_each_group(rewards, group, [&](std::span<const double> own, size_t first) {
    const double mean = mean_of_rewards(own);
    const double deviation = scale == ScaleRewards::batch ? of_batch : deviation_of_rewards(own);
    const double divisor = scale == ScaleRewards::none ? 1.0 : deviation + kLeastDeviation;
    for (size_t i = 0; i < own.size(); ++i)
      advantages[first + i] = number_or_zero((own[i] - mean) / divisor);
  });
  return advantages;
}

std::vector<double> leave_one_out_advantages(std::span<const double> rewards, int64_t group) {
  std::vector<double> advantages(rewards.size());
  for_each_group(rewards, group, [&](std::span<const double> own, size_t first) {
    const Numbers numbers = numbers_of(own);
    if (numbers.count < 2) return;  // there is nothing to compare with
    for (size_t i = 0; i < own.size(); ++i)
      advantages[first + i] = number_or_zero(own[i] - (numbers.sum - own[i]) / (numbers.count - 1));
  });
  return advantages;
}

}  // namespace snug::train
