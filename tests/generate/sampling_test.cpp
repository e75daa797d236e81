#include "engine/sampling.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <random>

#include "base/temporary_folder.h"
#include "golden_recipe.h"

namespace snug::testing {
namespace {

using engine::Draw;
using engine::Sampler;
using engine::SamplingOptions;

constexpr int64_t kDraws = 40000;
const std::vector<float> kLogits{1.0F, 3.0F, -2.0F, 2.5F, 0.0F, 2.0F};

std::map<int32_t, double> frequencies(const engine::SamplingOptions& options) {
  engine::Sampler sampler(options);
  std::map<int32_t, double> counts;
  for (int64_t i = 0; i < kDraws; ++i) counts[sampler.pick(kLogits, {i % 7, i / 7})] += 1;
  for (auto& [id, count] : counts) count /= static_cast<double>(kDraws);
  return counts;
}

// Frequencies against probabilities that only `kept` share, within 4 sigma.
void expect_distribution(const engine::SamplingOptions& options, const std::vector<int32_t>& kept) {
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

// Values of transformers 5.23's RepetitionPenaltyLogitsProcessor: what was seen twice counts once.
TEST(Sampling, PenalizesWhatWasSeenAsTransformersDoes) {
  const std::vector<int32_t> seen{3, 2, 3, 4};
  std::vector<float> result;
  engine::penalize_repetition(kLogits, seen, 1.3, result);
  EXPECT_EQ(result, (std::vector<float>{1, 3, -0x1.4ccccc0p+1F, 0x1.ec4ec60p+0F, 0, 2}));
  engine::penalize_repetition(kLogits, seen, 0.7, result);
  EXPECT_EQ(result, (std::vector<float>{1, 3, -0x1.6666660p+0F, 0x1.c924920p+1F, 0, 2}));
  // Then all tokens have to be looked at.
  EXPECT_EQ(engine::candidates_of({.temperature = 0}), 1);
  EXPECT_EQ(engine::candidates_of({.temperature = 0, .repetition_penalty = 1.3}), 0);
}

TEST(Sampling, GreedyTakesTheLikeliestAndOfEqualOnesTheFirst) {
  engine::Sampler greedy({.temperature = 0});
  engine::Sampler first({.temperature = 5, .top_k = 1});
  const std::vector<float> ties{0.0F, 2.0F, 2.0F, -1.0F};
  for (int64_t i = 0; i < 20; ++i) {
    EXPECT_EQ(greedy.pick(kLogits, {0, i}), 1);
    EXPECT_EQ(first.pick(kLogits, {0, i}), 1);
    EXPECT_EQ(greedy.pick(ties, {0, i}), 1);
  }
}

TEST(Sampling, DrawsAreAFunctionOfSeedPromptAndToken) {
  engine::Sampler a({.temperature = 1, .seed = 9});
  engine::Sampler b({.temperature = 1, .seed = 9});
  engine::Ids forward;
  engine::Ids backward;
  for (int64_t i = 0; i < 100; ++i) forward.push_back(a.pick(kLogits, {i % 3, i}));
  for (int64_t i = 99; i >= 0; --i) backward.insert(backward.begin(), b.pick(kLogits, {i % 3, i}));
  EXPECT_EQ(forward, backward);
}

// Against sorting the whole row: sizes around blocks, ties, and what is no number.
TEST(Sampling, LikeliestAreThoseThatSortingFinds) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::mt19937 random(7);
  for (const size_t size : {1U, 15U, 16U, 63U, 64U, 65U, 1000U, 20000U})
    for (const int kind : {0, 1, 2}) {
      std::normal_distribution<float> normal(0, kind == 1 ? 2 : 1000);
      std::vector<float> logits(size);
      for (float& logit : logits) logit = kind == 1 ? std::round(normal(random)) : normal(random);
      if (kind == 2)
        for (size_t i = 0; i < size; i += 3)
          logits[i] = i % 2 == 0 ? std::numeric_limits<float>::quiet_NaN() : -kInfinity;
      std::vector<int32_t> sorted;
      for (size_t i = 0; i < size; ++i)
        if (logits[i] > -kInfinity) sorted.push_back(static_cast<int32_t>(i));
      const auto logit = [&](int32_t id) { return logits[static_cast<size_t>(id)]; };
      std::ranges::stable_sort(sorted, std::greater<>(), logit);
      engine::BlockMaxima maxima;
      maxima.find(logits);
      EXPECT_EQ(maxima.likeliest(), sorted.empty() ? -1 : sorted[0]);
      for (const size_t count : {1U, 5U, 64U, 300U}) {
        std::vector<engine::Candidate> found;
        maxima.likeliest(count, found);
        std::erase_if(found, [](const auto& candidate) { return candidate.weight == -kInfinity; });
        ASSERT_EQ(found.size(), std::min(count, sorted.size())) << size << " " << kind;
        for (size_t i = 0; i < found.size(); ++i)
          ASSERT_EQ(found[i].id, sorted[i]) << size << " " << kind << " " << count << " " << i;
      }
    }
}

// More tokens make up the probability than are looked at first.
TEST(Sampling, TopPOfManyTokens) {
  const std::vector<float> flat(20000, 1.0F);
  engine::Sampler sampler({.temperature = 1, .top_p = 0.5, .seed = 3});
  int32_t most = 0;
  for (int64_t i = 0; i < 500; ++i) most = std::max(most, sampler.pick(flat, {0, i}));
  EXPECT_LT(most, 10000 + 1);
  EXPECT_GT(most, 9800);
}

TEST(Sampling, LogProbabilities) {
  double sum = 0;
  for (int32_t id = 0; id < 6; ++id) sum += std::exp(engine::log_probability(kLogits, id));
  EXPECT_NEAR(sum, 1, 1e-12);
  EXPECT_NEAR(engine::log_probability(kLogits, 1) - engine::log_probability(kLogits, 2), 5, 1e-12);
  const std::vector<float> large{1000.0F, 1001.0F};
  EXPECT_NEAR(engine::log_probability(large, 1), -std::log(1 + std::exp(-1.0)), 1e-9);
}

TEST(Sampling, LogitsThatAreNotFiniteAreRefused) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> damaged{kNan, kNan};
  EXPECT_TRUE(contains(user_error_of([&] { engine::argmax(damaged); }), "not finite"));
  const std::vector<float> infinite{0, std::numeric_limits<float>::infinity()};
  EXPECT_TRUE(contains(user_error_of([&] { engine::argmax(infinite); }), "not finite"));
  for (const std::vector<float>& logits : {damaged, infinite})
    EXPECT_TRUE(contains(user_error_of([&] { engine::log_probability(logits, 0); }), "not finite"));
  EXPECT_EQ(engine::argmax(std::vector<float>{kNan, 1.0F, 2.0F}), 2);
}

}  // namespace
}  // namespace snug::testing
