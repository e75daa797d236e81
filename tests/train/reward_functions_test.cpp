// What answers are rewarded by, as recipes name it: scores with weights, and the field of a record
// that each is held against.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "../base/captured_stream.h"
#include "../base/temporary_folder.h"
#include "base/file.h"
#include "formats/recipe/recipe.h"
#include "train/rewards/reward_functions.h"
#include "train/rewards/soft_overlong.h"

namespace snug::train {
namespace {

using formats::Recipe;
using testing::contains;
using testing::user_error_of;

Recipe rewards_of(const std::string& yaml, const std::vector<std::string>& words = {}) {
  return formats::parse_recipe(yaml, "recipe.yaml", words);
}

RewardedRecord record_of(const std::string& fields, const std::string& answer = "") {
  return {.fields = fields, .file = "data.jsonl", .line = 3, .answer = answer};
}

// The rewards of one answer.
std::vector<double> judged(const Recipe& recipe, const RewardedRecord& record,
                           std::string_view answer) {
  RewardFunctions functions(recipe);
  functions.check(record);
  const std::vector<RewardedAnswer> answers{{.prompt = "Q", .answer = answer, .record = &record}};
  return functions.judge(answers);
}

TEST(RewardFunctions, AListAndAMapNameTheSame) {
  const std::vector<std::string> names{"exact", "format", "regex"};
  const std::vector<double> weights{1, 0.2, -0.5};
  const std::vector<std::string> recipes{
      "rewards: \"exact,format:<think>.*</think>.*:0.2,regex:(\\\\d{1,2}):-0.5\"",
      "rewards: [exact, 'format:<think>.*</think>.*:0.2', 'regex:(\\d{1,2}):-0.5']",
      "rewards: {exact: 1, 'format:<think>.*</think>.*': 0.2, 'regex:(\\d{1,2})': -0.5}",
      "rewards:\n  - exact: 1\n  - 'format:<think>.*</think>.*': 0.2\n  - 'regex:(\\d{1,2})': "
      "-0.5"};
  for (const std::string& yaml : recipes) {
    const RewardFunctions functions(rewards_of(yaml));
    EXPECT_EQ(functions.names(), names) << yaml;
    EXPECT_EQ(functions.weights(), weights) << yaml;
  }
  const RewardFunctions changed(rewards_of(recipes[2], {"rewards.exact=3"}));
  EXPECT_EQ(changed.names().size(), 3U);
  EXPECT_EQ(changed.weights()[static_cast<size_t>(std::ranges::find(changed.names(), "exact") -
                                                  changed.names().begin())],
            3);
}

TEST(RewardFunctions, EachIsHeldAgainstItsField) {
  const testing::CapturedStream said(stderr);
  const Recipe recipe =
      rewards_of("rewards: [exact, number, format:a]\nreward_fields: {number: meta.gold.1}");
  const RewardedRecord record =
      record_of(R"({"answer": "four", "meta": {"gold": [1, "so #### 4"]}})");
  EXPECT_EQ(judged(recipe, record, " four \n"), (std::vector<double>{1, 0, 0}));
  EXPECT_EQ(judged(recipe, record, "it is 4.0"), (std::vector<double>{0, 1, 0}));
  EXPECT_EQ(judged(recipe, record, "a"), (std::vector<double>{0, 0, 1}));
  EXPECT_EQ(said.text(), "");
}

TEST(RewardFunctions, WithoutAFieldAnswersAreLookedFor) {
  const testing::CapturedStream said(stderr);
  const Recipe recipe = rewards_of("rewards: number");
  const auto reward = [&](const RewardedRecord& record) {
    return judged(recipe, record, "72").front();
  };
  EXPECT_EQ(reward(record_of(R"({"answer": 72, "solution": "1"})", "1")), 1);
  EXPECT_EQ(said.text(), "");
  EXPECT_EQ(reward(record_of(R"({"solution": "so \\boxed{72}", "target": "1"})", "1")), 1);
  EXPECT_TRUE(
      contains(said.text(), "reward number: answers are held against the field 'solution'"));
  EXPECT_EQ(reward(record_of(R"({"messages": []})", "#### 72")), 1);
  EXPECT_TRUE(contains(said.text(), "against the answers that records hold"));
}

TEST(RewardFunctions, MistakesNameTheRecordAndWhatToDo) {
  const auto error = [](const std::string& yaml, const std::string& fields) {
    return user_error_of([&] { judged(rewards_of(yaml), record_of(fields), "a"); });
  };
  EXPECT_EQ(error("rewards: exact", R"({"prompt": "a", "gold": "b"})"),
            "data.jsonl:3: reward exact holds answers against the field 'answer', which the record "
            "lacks; found: gold, prompt; reward_fields=exact=FIELD names another");
  EXPECT_TRUE(contains(error("rewards: exact\nreward_fields: {exact: gold}", R"({"answer": "b"})"),
                       "against the field 'gold', which the record lacks; found: answer"));
  EXPECT_TRUE(contains(error("rewards: exact\nreward_fields: {exact: gold}", R"({"gold": ["b"]})"),
                       "which is a list; expected a text or a number, such as gold.0 of a list"));
  EXPECT_TRUE(contains(error("rewards: number", R"({"answer": "none"})"),
                       "what answers are held against has no number; reward_fields=number=FIELD"));
  EXPECT_TRUE(contains(error("rewards: exact\nreward_fields: {format: gold}", "{}"),
                       "names the field 'gold' for 'format', which is none of the rewards"));
  EXPECT_TRUE(contains(error("rewards: rogueL", "{}"), "did you mean rougeL?"));
  EXPECT_TRUE(contains(error("rewards: exec", "{}"), "it names no program; expected exec:PROGRAM"));
  EXPECT_TRUE(contains(error("rewards: exec:./nowhere.py", "{}"), "there is no file ./nowhere.py"));
  EXPECT_TRUE(contains(error("rewards: {exact: 1, exec:'a: 2}", "{}"), "is not closed"));
  EXPECT_TRUE(contains(error("rewards: soft_overlong:0", "{}"), "must be a whole number from 1"));
  EXPECT_TRUE(contains(error("rewards: exact\nreward_weights: [1]", "{}"),
                       "say each weight behind the name of its reward"));
  EXPECT_TRUE(contains(error("method: lora", "{}"), "'rewards' is not given"));
}

TEST(RewardFunctions, ProgramsStandNextToScoresAndSpeakIntoTheFolderOfTheRun) {
  const testing::TemporaryFolder folder;
  const Recipe recipe = rewards_of(
      "rewards: [\"exec:sh -c 'echo said >&2; while read a; do echo 2; done':0.5\", exact]",
      {"output_dir=" + folder.path().string()});
  EXPECT_EQ(RewardFunctions(recipe).weights(), (std::vector<double>{0.5, 1}));
  EXPECT_EQ(judged(recipe, record_of(R"({"answer": "a"})"), "a"), (std::vector<double>{2, 1}));
  EXPECT_EQ(base::read_text_file(folder / "reward_program.log"), "said\n");
}

TEST(RewardFunctions, LongAnswersArePunishedAsInTrl) {
  std::ifstream stream("tests/goldens/reward_prompts.json");
  const nlohmann::json golden = nlohmann::json::parse(stream)["soft_overlong"];
  ASSERT_EQ(golden["rewards"].size(), 7U);
  for (const auto& one : golden["rewards"])
    EXPECT_EQ(soft_overlong(one[0], golden["most"], golden["cache"]), one[1].get<double>())
        << one.dump();
}

}  // namespace
}  // namespace snug::train
