#include "train/rewards/answer_metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string_view>

#include "base/error.h"

namespace snug::train {
namespace {

// What one function gave to each answer.
std::vector<double> rewards_by(const GivenRewards& given, size_t function) {
  std::vector<double> own(given.rewards.size() / given.names.size());
  for (size_t i = 0; i < own.size(); ++i) own[i] = given.rewards[i * given.names.size() + function];
  return own;
}

double share_of_equal_rewards(std::span<const double> rewards, int64_t group, ScaleRewards scale) {
  const auto size = scale == ScaleRewards::batch ? rewards.size() : static_cast<size_t>(group);
  double equal = 0;
  for (size_t first = 0; first < rewards.size(); first += size)
    if (deviation_of_rewards(rewards.subspan(first, size)) <= kEqualRewards)
      equal += static_cast<double>(size);
  return equal / static_cast<double>(rewards.size());
}

// completions/{mean,min,max}_NAME of lengths, of which there is at least one.
void add_lengths(std::vector<NamedMeasure>& metrics, std::string_view name,
                 const std::vector<int64_t>& lengths) {
  const auto [least, most] = std::ranges::minmax(lengths);
  const auto sum = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
  const double mean = static_cast<double>(sum) / static_cast<double>(lengths.size());
  metrics.push_back({fmt::format("completions/mean_{}", name), mean});
  metrics.push_back({fmt::format("completions/min_{}", name), static_cast<double>(least)});
  metrics.push_back({fmt::format("completions/max_{}", name), static_cast<double>(most)});
}

}  // namespace

std::vector<NamedMeasure> reward_metrics(const GivenRewards& given, ScaleRewards scale) {
  SNUG_CHECK(!given.rewards.empty() && given.names.size() == given.weights.size(),
             "{} rewards by {} functions of {} weights", given.rewards.size(), given.names.size(),
             given.weights.size());
  std::vector<NamedMeasure> metrics;
  metrics.reserve(2 * given.names.size() + 3);
  for (size_t f = 0; f < given.names.size(); ++f) {
    const std::vector<double> own = rewards_by(given, f);
    metrics.push_back({fmt::format("rewards/{}/mean", given.names[f]), mean_of_rewards(own)});
    metrics.push_back({fmt::format("rewards/{}/std", given.names[f]), deviation_of_rewards(own)});
  }
  const std::vector<double> sums = weighted_rewards(given.rewards, given.weights);
  metrics.push_back({"reward", mean_of_rewards(sums)});
  metrics.push_back({"reward_std", deviation_of_rewards(sums)});
  metrics.push_back(
      {std::string(kEqualShareName), share_of_equal_rewards(sums, given.group, scale)});
  return metrics;
}

std::vector<NamedMeasure> length_metrics(std::span<const int64_t> lengths,
                                         const std::vector<bool>& ended) {
  SNUG_CHECK(!lengths.empty() && lengths.size() == ended.size(), "{} answers, of {} known",
             lengths.size(), ended.size());
  std::vector<int64_t> whole;
  whole.reserve(lengths.size());
  for (size_t i = 0; i < lengths.size(); ++i)
    if (ended[i]) whole.push_back(lengths[i]);
  const auto answers = static_cast<double>(lengths.size());
  const double clipped = (answers - static_cast<double>(whole.size())) / answers;
  if (whole.empty()) whole.push_back(0);
  std::vector<NamedMeasure> metrics;
  metrics.reserve(7);
  add_lengths(metrics, "length", {lengths.begin(), lengths.end()});
  metrics.push_back({std::string(kCutShareName), clipped});
  add_lengths(metrics, "terminated_length", whole);
  return metrics;
}

double standard_error_of(std::span<const double> rewards, int64_t group) {
  const auto size = static_cast<size_t>(group);
  std::vector<double> means(rewards.size() / size);
  for (size_t i = 0; i < means.size(); ++i)
    means[i] = mean_of_rewards(rewards.subspan(i * size, size));
  return deviation_of_rewards(means) / std::sqrt(static_cast<double>(means.size()));
}

// Those of two answers that are not there.
std::vector<std::string> evaluated_measures(std::span<const std::string> functions) {
  const std::vector<double> rewards(2 * functions.size());
  const std::vector<double> weights(functions.size());
  const std::vector<int64_t> lengths(2);
  std::vector<std::string> names;
  const auto add = [&](const std::vector<NamedMeasure>& measures) {
    names.reserve(names.size() + measures.size() + 2);
    for (const NamedMeasure& measure : measures) names.push_back(measure.name);
  };
  add(reward_metrics({.rewards = rewards, .names = functions, .weights = weights, .group = 2},
                     ScaleRewards::group));
  add(length_metrics(lengths, {false, false}));
  names.emplace_back(kEntropyName);
  names.emplace_back(kStandardErrorName);
  return names;
}

}  // namespace snug::train
