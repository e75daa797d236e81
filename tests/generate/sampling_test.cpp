#include "engine/sampling.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <random>

#include "base/temporary_folder.h"
#include "engine/log_probabilities.h"
#include "engine/penalties.h"
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
  const auto penalized = [&](double penalty) {
    engine::Penalties penalties({.repetition_penalty = penalty});
    const std::span<const float> result =
        penalties.applied(kLogits, {std::span(seen).first(2), std::span(seen).subspan(2)});
    return std::vector<float>(result.begin(), result.end());
  };
  EXPECT_EQ(penalized(1.3), (std::vector<float>{1, 3, -0x1.4ccccc0p+1F, 0x1.ec4ec60p+0F, 0, 2}));
  EXPECT_EQ(penalized(0.7), (std::vector<float>{1, 3, -0x1.6666660p+0F, 0x1.c924920p+1F, 0, 2}));
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

// Against std::exp, at all ends of a block, and what has no weight.
TEST(Sampling, WeightsAreExponentials) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::mt19937 random(3);
  std::uniform_real_distribution<float> uniform(-700, 0);
  for (const double temperature : {1.0, 0.37, 12.5})
    for (const size_t size : {1U, 63U, 64U}) {
      std::vector<float> logits(size);
      for (float& logit : logits) logit = uniform(random) * static_cast<float>(temperature);
      logits[0] = 0;
      std::vector<double> weights(size);
      engine::TokenWeights(0, temperature).of(logits, weights.data());
      for (size_t i = 0; i < size; ++i) {
        const double expected = std::exp(double{logits[i]} * (1 / temperature));
        EXPECT_NEAR(weights[i], expected, 5e-16 * expected) << logits[i];
      }
    }
  const std::vector<float> none{-kInfinity, std::numeric_limits<float>::quiet_NaN(),
                                -std::numeric_limits<float>::quiet_NaN(), -1e30F, 5};
  std::vector<double> weights(none.size());
  engine::TokenWeights(5, 1e-300).of(none, weights.data());
  EXPECT_EQ(weights, (std::vector<double>{0, 0, 0, 0, 1}));
}

// The smallest logit whose weight reaches a share: the next smaller one does not.
TEST(Sampling, LeastLogitIsTheBorder) {
  for (const double temperature : {1e-3, 1.0, 30.0})
    for (const double share : {1.0, 0.5, 0.05, 1e-9}) {
      const engine::TokenWeights weights(3.25, temperature);
      const float least = weights.least_logit(share);
      EXPECT_GE(weights.of(least), share);
      EXPECT_LT(weights.of(std::nextafter(least, -1e30F)), share) << temperature << " " << share;
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

// Of log_softmax(logits / temperature), whatever is cut away or penalized afterwards.
TEST(Sampling, LogProbabilitiesOfTheLikeliest) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<float> logits{1, -kInfinity, 2.5, 2.5, -1};
  double sum = 0;
  for (const double logit : {1.0, 2.5, 2.5, -1.0}) sum += std::exp(logit / 0.7);
  engine::LogProbabilities row(logits, 0.7);
  EXPECT_NEAR(row.of(0), 1 / 0.7 - std::log(sum), 1e-14);
  EXPECT_EQ(row.of(1), -kInfinity);
  std::vector<int32_t> ids;
  for (const engine::Candidate& token : row.likeliest(5)) {
    ids.push_back(token.id);
    EXPECT_EQ(token.weight, row.of(token.id));
  }
  EXPECT_EQ(ids, (std::vector<int32_t>{2, 3, 0, 4}));
  EXPECT_EQ(row.likeliest(1).size(), 1U);
  EXPECT_EQ(engine::LogProbabilities(logits, 0).of(0), engine::log_probability(logits, 0));
}

// OpenAI's definition: of the answer's tokens alone, by how often they came and whether they did.
TEST(Sampling, PenaltiesOfTheAnswer) {
  const std::vector<int32_t> read{0, 1};
  const std::vector<int32_t> answer{3, 5, 3, 3};
  engine::Penalties penalties({.presence_penalty = 0.5, .frequency_penalty = 0.25});
  for (int i = 0; i < 2; ++i) {  // nothing is left of the call before
    const std::span<const float> result = penalties.applied(kLogits, {read, answer});
    EXPECT_EQ(std::vector<float>(result.begin(), result.end()),
              (std::vector<float>{1, 3, -2, 1.25F, 0, 1.25F}));
  }
  engine::Penalties none({.temperature = 1});
  EXPECT_EQ(none.applied(kLogits, {read, answer}).data(), kLogits.data());
  EXPECT_EQ(engine::candidates_of({.temperature = 0, .presence_penalty = 1}), 0);
  EXPECT_EQ(engine::candidates_of({.temperature = 0, .frequency_penalty = -1}), 0);
  EXPECT_EQ(engine::candidates_of({.temperature = 1, .top_k = 40, .min_p = 0.1}), 40);
}

// A list of the likeliest gives the tokens that the whole row gives.
TEST(Sampling, AListOfTheLikeliestIsEnough) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal(0, 3);
  std::vector<float> logits(1000);
  for (float& logit : logits) logit = normal(random);
  for (SamplingOptions options : {SamplingOptions{.temperature = 1, .top_k = 40},
                                  {.temperature = 2, .top_k = 40, .top_p = 0.8},
                                  {.temperature = 2, .top_k = 40, .min_p = 0.2},
                                  {.temperature = 2, .top_k = 40, .top_p = 0.9, .min_p = 0.1}}) {
    options.seed = 17;
    engine::BlockMaxima maxima;
    maxima.find(logits);
    std::vector<engine::Candidate> likeliest;
    maxima.likeliest(40, likeliest);
    std::vector<float> values;
    engine::Ids ids;
    for (const engine::Candidate& token : likeliest) {
      values.push_back(static_cast<float>(token.weight));
      ids.push_back(token.id);
    }
    engine::Sampler sampler(options);
    for (int64_t i = 0; i < 200; ++i)
      ASSERT_EQ(sampler.pick(engine::Likeliest{values, ids}, {0, i}), sampler.pick(logits, {0, i}));
  }
}

// Log-probabilities of the new token alone ask for none.
TEST(Sampling, NoneOfTheLikeliestAreNone) {
  engine::BlockMaxima maxima;
  maxima.find(kLogits);
  std::vector<engine::Candidate> likeliest(3);
  maxima.likeliest(0, likeliest);
  EXPECT_TRUE(likeliest.empty());
  maxima.likeliest_and_equals(0, likeliest);
  EXPECT_TRUE(likeliest.empty());
}

TEST(Sampling, OptionsThatMeanNothingAreRefused) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const auto refused = [](const SamplingOptions& options, const std::string& name) {
    return contains(user_error_of([&] { engine::check_sampling(options); }), name + " is ");
  };
  EXPECT_TRUE(refused({.temperature = -1}, "temperature"));
  EXPECT_TRUE(refused({.temperature = kNan}, "temperature"));
  EXPECT_TRUE(refused({.top_k = -1}, "top_k"));
  EXPECT_TRUE(refused({.top_p = 0}, "top_p"));
  EXPECT_TRUE(refused({.top_p = 1.5}, "top_p"));
  EXPECT_TRUE(refused({.min_p = 1.5}, "min_p"));
  EXPECT_TRUE(refused({.repetition_penalty = 0}, "repetition_penalty"));
  EXPECT_TRUE(refused({.presence_penalty = kNan}, "presence_penalty"));
  EXPECT_TRUE(refused({.frequency_penalty = -1e9}, "frequency_penalty"));
  engine::check_sampling({.temperature = 1e30, .top_k = 2147483647, .min_p = 1});
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
