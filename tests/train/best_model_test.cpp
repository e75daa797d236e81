// Which evaluation is the best, and when a run ends early, against transformers' Trainer and
// EarlyStoppingCallback (tests/goldens/best_models.json).
#include "train/best_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "../base/temporary_folder.h"
#include "../source_folder.h"
#include "base/file.h"

namespace snug::train {
namespace {

using Json = nlohmann::json;

TEST(BestModel, IsThatOfTransformers) {
  const Json cases =
      Json::parse(base::read_text_file(test::source_folder() + "/tests/goldens/best_models.json"));
  ASSERT_GE(cases.size(), 40U);
  for (const Json& each : cases) {
    const BestRule rule{.metric = "eval_loss",
                        .is_greatest = each["greater"],
                        .patience = each["patience"],
                        .threshold = each["threshold"]};
    runtime::RunHistory history;
    std::vector<int64_t> better;
    int64_t end = 0;
    for (size_t i = 0; i < each["values"].size() && end == 0; ++i) {
      const auto number = static_cast<int64_t>(i + 1);
      if (count_evaluation(rule, each["values"][i], history)) better.push_back(number);
      if (is_out_of_patience(rule, history)) end = number;
    }
    EXPECT_EQ(end, each["end"].get<int64_t>()) << each;
    EXPECT_EQ(history.best_metric, each["best"].get<double>()) << each;
    EXPECT_EQ(better, each["better"].get<std::vector<int64_t>>()) << each;
  }
}

TEST(BestModel, NoNumberIsNoBetter) {
  const BestRule rule{.metric = "eval_loss", .patience = 2};
  runtime::RunHistory history;
  EXPECT_FALSE(count_evaluation(rule, NAN, history));
  EXPECT_TRUE(count_evaluation(rule, 2, history));
  EXPECT_FALSE(count_evaluation(rule, NAN, history));
  EXPECT_FALSE(is_out_of_patience(rule, history));
  EXPECT_FALSE(count_evaluation(rule, NAN, history));
  EXPECT_TRUE(is_out_of_patience(rule, history));
  EXPECT_EQ(history.best_metric, 2);
}

// Not of those that were evaluated and not written.
TEST(BestModel, IsTheBestCheckpointThatWasWritten) {
  const BestRule rule{.metric = "eval_loss"};
  runtime::RunHistory history;
  count_checkpoint(rule, 3, 10, history);
  count_evaluation(rule, 1, history);  // at step 15, without a checkpoint
  count_checkpoint(rule, 2, 20, history);
  count_checkpoint(rule, 2.5, 30, history);
  count_checkpoint(rule, 2, 40, history);
  EXPECT_EQ(history.best_checkpoint, 20);
  EXPECT_EQ(history.best_saved_metric, 2);
}

TEST(BestModel, IsForgottenWhereAnotherMetricRanks) {
  BestRule rule{.metric = "eval_loss"};
  runtime::RunHistory history;
  EXPECT_FALSE(take_rule(rule, history)) << "nothing was ranked";
  count_evaluation(rule, 1, history);
  count_checkpoint(rule, 1, 10, history);
  EXPECT_FALSE(take_rule(rule, history));
  EXPECT_EQ(history.best_checkpoint, 10);
  rule.is_greatest = true;
  EXPECT_TRUE(take_rule(rule, history));
  EXPECT_EQ(history.best_checkpoint, 0);
  EXPECT_FALSE(history.best_metric.has_value());
}

TEST(BestModel, RulesComeFromTheRecipe) {
  const std::vector<std::string> keys{"eval_loss", "eval_perplexity", "eval_rewards/accuracies"};
  const auto rule_of = [&](const std::string& yaml) {
    return best_rule_of(formats::parse_recipe(yaml + "\neval_data: e", "r.yaml"), keys);
  };
  EXPECT_FALSE(rule_of("").ranks());
  EXPECT_EQ(rule_of("load_best_model_at_end: true").name(), "least eval_loss");
  EXPECT_EQ(rule_of("metric_for_best_model: perplexity").name(), "least eval_perplexity");
  EXPECT_EQ(rule_of("metric_for_best_model: eval_rewards/accuracies").name(),
            "greatest eval_rewards/accuracies");
  EXPECT_EQ(rule_of("metric_for_best_model: eval_loss\ngreater_is_better: true").name(),
            "greatest eval_loss");
  const BestRule patient = rule_of("early_stopping_patience: 3\nearly_stopping_threshold: 0.1");
  EXPECT_EQ(patient.patience, 3);
  EXPECT_EQ(patient.threshold, 0.1);
  EXPECT_TRUE(testing::contains(
      testing::user_error_of([&] { rule_of("metric_for_best_model: bleu"); }),
      "r.yaml:1:1: 'metric_for_best_model' is bleu, which no evaluation of this run gives; they "
      "give eval_loss, eval_perplexity, eval_rewards/accuracies"));
}

}  // namespace
}  // namespace snug::train
