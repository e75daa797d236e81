#include "generate/sampling.h"

#include <cmath>
#include <limits>
#include <map>

#include "base/temporary_folder.h"
#include "golden_recipe.h"

namespace snug::testing {
namespace {

using generate::Draw;
using generate::Sampler;
using generate::SamplingOptions;

constexpr int64_t kDraws = 40000;
const std::vector<float> kLogits{1.0F, 3.0F, -2.0F, 2.5F, 0.0F, 2.0F};

std::map<int32_t, double> frequencies(const SamplingOptions& options) {
  Sampler sampler(options);
  std::map<int32_t, double> counts;
  for (int64_t i = 0; i < kDraws; ++i) counts[sampler.pick(kLogits, {i % 7, i / 7})] += 1;
  for (auto& [id, count] : counts) count /= static_cast<double>(kDraws);
  return counts;
}

// Frequencies against probabilities that only `kept` share, within 4 sigma.
void expect_distribution(const SamplingOptions& options, const std::vector<int32_t>& kept) {
  double total = 0;
  const auto weight = [&](int32_t id) {
    return std::exp(kLogits[static_cast<size_t>(id)] / options.temperature);
  };
  for (const int32_t id : kept) total += weight(id);
  std::map<int32_t, double> measured = frequencies(options);
  EXPECT_LE(measured.size(), kept.size());
  for (const int32_t id : kept) {
    const double p = weight(id) / total;
    const double sigma = std::sqrt(p * (1 - p) / static_cast<double>(kDraws));
    EXPECT_NEAR(measured[id], p, 4 * sigma) << "token " << id;
  }
}

TEST(Sampling, Distribution) {
  expect_distribution({.temperature = 1.0, .seed = 1}, {0, 1, 2, 3, 4, 5});
  expect_distribution({.temperature = 0.5, .seed = 2}, {0, 1, 2, 3, 4, 5});
  expect_distribution({.temperature = 3.0, .seed = 1}, {0, 1, 2, 3, 4, 5});
}

TEST(Sampling, TopKKeepsTheLikeliest) {
  expect_distribution({.temperature = 1.0, .top_k = 3, .seed = 1}, {1, 3, 5});
  expect_distribution({.temperature = 2.0, .top_k = 100, .seed = 1}, {0, 1, 2, 3, 4, 5});
}

// Probabilities at temperature 1: 0.45, 0.27, 0.17, 0.06, 0.02, 0.003 (rounded).
TEST(Sampling, TopPKeepsTheFewestThatReachIt) {
  expect_distribution({.temperature = 1.0, .top_p = 0.4, .seed = 1}, {1});
  expect_distribution({.temperature = 1.0, .top_p = 0.5, .seed = 1}, {1, 3});
  expect_distribution({.temperature = 1.0, .top_p = 0.8, .seed = 1}, {1, 3, 5});
  expect_distribution({.temperature = 1.0, .top_k = 2, .top_p = 0.9, .seed = 1}, {1, 3});
}

TEST(Sampling, GreedyTakesTheLikeliestAndOfEqualOnesTheFirst) {
  Sampler greedy({.temperature = 0});
  Sampler first({.temperature = 5, .top_k = 1});
  const std::vector<float> ties{0.0F, 2.0F, 2.0F, -1.0F};
  for (int64_t i = 0; i < 20; ++i) {
    EXPECT_EQ(greedy.pick(kLogits, {0, i}), 1);
    EXPECT_EQ(first.pick(kLogits, {0, i}), 1);
    EXPECT_EQ(greedy.pick(ties, {0, i}), 1);
  }
}

TEST(Sampling, DrawsAreAFunctionOfSeedPromptAndToken) {
  Sampler a({.temperature = 1, .seed = 9});
  Sampler b({.temperature = 1, .seed = 9});
  Ids forward;
  Ids backward;
  for (int64_t i = 0; i < 100; ++i) forward.push_back(a.pick(kLogits, {i % 3, i}));
  for (int64_t i = 99; i >= 0; --i) backward.insert(backward.begin(), b.pick(kLogits, {i % 3, i}));
  EXPECT_EQ(forward, backward);
}

TEST(Sampling, LogProbabilities) {
  double sum = 0;
  for (int32_t id = 0; id < 6; ++id) sum += std::exp(generate::log_probability(kLogits, id));
  EXPECT_NEAR(sum, 1, 1e-12);
  EXPECT_NEAR(generate::log_probability(kLogits, 1) - generate::log_probability(kLogits, 2), 5,
              1e-12);
  const std::vector<float> large{1000.0F, 1001.0F};
  EXPECT_NEAR(generate::log_probability(large, 1), -std::log(1 + std::exp(-1.0)), 1e-9);
}

TEST(Sampling, LogitsThatAreNotFiniteAreRefused) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> damaged{kNan, kNan};
  EXPECT_TRUE(contains(user_error_of([&] { generate::argmax(damaged); }), "not finite"));
  const std::vector<float> infinite{0, std::numeric_limits<float>::infinity()};
  EXPECT_TRUE(contains(user_error_of([&] { generate::argmax(infinite); }), "not finite"));
  EXPECT_EQ(generate::argmax(std::vector<float>{kNan, 1.0F, 2.0F}), 2);
}

}  // namespace
}  // namespace snug::testing
