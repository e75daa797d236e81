// report_to: TensorBoard is obeyed; of other services one note says what to use instead.
#include "formats/recipe/report_keys.h"

#include <gtest/gtest.h>

#include "../base/temporary_folder.h"

namespace snug::formats {
namespace {

using snug::testing::contains;

Recipe recipe_of(const std::string& yaml) {
  return parse_recipe("method: full\n" + yaml, "r.yaml");
}

TEST(ReportTo, ObeysTensorBoard) {
  for (const char* said :
       {"report_to: tensorboard", "report_to: [tensorboard]", "report_to: TensorBoard",
        "report_to: \"tensorboard,none\"", "use_tensorboard: true", "logger_name: tensorboard"}) {
    const Recipe recipe = recipe_of(said);
    EXPECT_TRUE(reports_to_tensorboard(recipe)) << said;
    EXPECT_TRUE(recipe.notes.empty()) << said << ": " << recipe.notes.front();
  }
}

TEST(ReportTo, ReportsNothingElse) {
  for (const char* said : {"", "report_to: none", "report_to: []", "report_to: [none]"}) {
    const Recipe recipe = recipe_of(said);
    EXPECT_FALSE(reports_to_tensorboard(recipe)) << said;
    EXPECT_TRUE(recipe.notes.empty()) << said << ": " << recipe.notes.front();
  }
}

TEST(ReportTo, TakesNoForNo) {
  EXPECT_FALSE(reports_to_tensorboard(recipe_of("use_tensorboard: false")));
}

TEST(ReportTo, SaysInOneNoteWhatToUseInstead) {
  const Recipe recipe = recipe_of("report_to: [wandb, trackio]");
  ASSERT_EQ(recipe.notes.size(), 1U);
  for (const char* part : {"r.yaml:2:1: 'report_to' is wandb, trackio:", "metrics.jsonl",
                           "report_to: tensorboard", "snug runs"})
    EXPECT_TRUE(contains(recipe.notes[0], part)) << recipe.notes[0];
  for (const char* name : {"all", "mlflow", "comet_ml", "swanlab", "clearml", "azure_ml", "neptune",
                           "dvclive", "codecarbon", "flyte"})
    EXPECT_EQ(recipe_of(std::string("report_to: ") + name).notes.size(), 1U) << name;
  const Recipe both = recipe_of("report_to: [tensorboard, wandb]");
  EXPECT_TRUE(reports_to_tensorboard(both));
  ASSERT_EQ(both.notes.size(), 1U);
  EXPECT_FALSE(contains(both.notes[0], "report_to: tensorboard"));
}

TEST(ReportTo, RefusesASlip) {
  for (const auto& [slip, meant] :
       std::vector<std::pair<std::string, std::string>>{{"tensorbord", "tensorboard"},
                                                        {"wandbb", "wandb"},
                                                        {"wanb", "wandb"},
                                                        {"mlfow", "mlflow"},
                                                        {"Trakio", "trackio"},
                                                        {"comet-ml", "comet_ml"},
                                                        {"nne", "none"}})
    EXPECT_TRUE(contains(testing::user_error_of([&] { recipe_of("report_to: " + slip); }),
                         "; did you mean " + meant + "?"))
        << slip;
  for (const char* other : {"grafana", "my_service"})
    EXPECT_TRUE(contains(testing::user_error_of(
                             [&] { recipe_of(std::string("report_to: [wandb, ") + other + "]"); }),
                         fmt::format("r.yaml:2:1: 'report_to' is '{}'; expected none, tensorboard, "
                                     "or the name of a service",
                                     other)));
}

// What recipe.yaml says reads back.
TEST(ReportTo, IsPrintedAsItIsObeyed) {
  const Recipe recipe = recipe_of("report_to: [tensorboard, wandb]");
  EXPECT_TRUE(reports_to_tensorboard(parse_recipe(to_yaml(recipe), "r.yaml")));
  EXPECT_TRUE(parse_recipe(to_yaml(recipe), "r.yaml").notes.empty());
  EXPECT_TRUE(holds_default(recipe_of("report_to: wandb"), "report_to"));
}

}  // namespace
}  // namespace snug::formats
