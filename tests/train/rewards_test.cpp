// Advantages and metrics of rewards against TRL's trainers, and what tokens count.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "train/rewards/advantages.h"
#include "train/rewards/answer_metrics.h"
#include "train/rewards/token_weights.h"

namespace snug::train {
namespace {

class Rewards : public ::testing::Test {
 protected:
  void SetUp() override {
    std::ifstream stream("tests/goldens/grpo_rewards.json");
    golden_ = nlohmann::json::parse(stream);
    for (const auto& answer : golden_["rewards"])
      for (const auto& reward : answer)
        rewards_.push_back(reward.is_null() ? std::numeric_limits<double>::quiet_NaN()
                                            : reward.get<double>());
    weights_ = golden_["weights"].get<std::vector<double>>();
  }

  std::vector<double> sums() const { return weighted_rewards(rewards_, weights_); }

  nlohmann::json golden_;
  std::vector<double> rewards_;  // (answers, functions)
  std::vector<double> weights_;
};

TEST_F(Rewards, BecomeTrlsAdvantages) {
  ASSERT_EQ(golden_["runs"].size(), 4U);
  for (const auto& run : golden_["runs"]) {
    SCOPED_TRACE(run.dump());
    const int64_t group = golden_["group"];
    const std::vector<double> advantages =
        run["trainer"] == "rloo"
            ? leave_one_out_advantages(sums(), group)
            : group_advantages(
                  sums(), group,
                  base::from_word<ScaleRewards>(run["scale_rewards"].get<std::string>()).value());
    const auto expected = run["advantages"].get<std::vector<double>>();
    ASSERT_EQ(advantages.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_NEAR(advantages[i], expected[i], 1e-5) << "of answer " << i;
  }
}

TEST_F(Rewards, AreReportedAsByTrl) {
  const std::vector<std::string> names{"first", "second"};
  for (const auto& run : golden_["runs"]) {
    SCOPED_TRACE(run.dump());
    const auto scale =
        base::from_word<ScaleRewards>(run.value("scale_rewards", std::string("group"))).value();
    std::vector<NamedMeasure> metrics =
        reward_metrics({rewards_, names, weights_, golden_["group"]}, scale);
    const auto lengths = golden_["lengths"].get<std::vector<int64_t>>();
    const auto ended = golden_["ended"].get<std::vector<bool>>();
    for (NamedMeasure& metric : length_metrics(lengths, ended))
      metrics.push_back(std::move(metric));
    std::map<std::string, double> found;
    for (const NamedMeasure& metric : metrics) found[metric.name] = metric.value;
    EXPECT_EQ(found.size(), metrics.size());
    for (const auto& [name, value] : run["metrics"].items()) {
      ASSERT_TRUE(found.contains(name)) << name;
      EXPECT_NEAR(found[name], value.get<double>(), 1e-5) << name;
    }
    EXPECT_EQ(found.size(), run["metrics"].size());
  }
}

TEST_F(Rewards, OfNoAnswerThatEndedHaveNoLength) {
  const std::vector<int64_t> lengths{4, 6};
  const std::vector<NamedMeasure> metrics = length_metrics(lengths, {false, false});
  EXPECT_EQ(metrics[3].value, 1.0) << metrics[3].name;
  for (size_t i = 4; i < 7; ++i) EXPECT_EQ(metrics[i].value, 0.0) << metrics[i].name;
}

// Six tokens in two micro-batches of two answers, of which the last is masked.
TEST(TokenWeights, AreThoseOfTheLoss) {
  const std::vector<int64_t> learned{1, 3, 2, 0};
  const StepAnswers answers{.learned = learned, .per_micro_batch = 2, .max_completion_length = 8};
  using Weights = std::vector<double>;
  EXPECT_EQ(token_weights(AnswerLoss::grpo, answers),
            (Weights{1.0 / 4, 1.0 / 12, 1.0 / 8, 1.0 / 4}));
  EXPECT_EQ(token_weights(AnswerLoss::bnpo, answers),
            (Weights{1.0 / 8, 1.0 / 8, 1.0 / 4, 1.0 / 4}));
  EXPECT_EQ(token_weights(AnswerLoss::dr_grpo, answers), Weights(4, 1.0 / 32));
  EXPECT_EQ(token_weights(AnswerLoss::dapo, answers), Weights(4, 1.0 / 6));
}

}  // namespace
}  // namespace snug::train
