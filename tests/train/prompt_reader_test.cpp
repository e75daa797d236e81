// The prompts of records: TRL's ids, every form that asks something, and what is left out.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "../base/captured_stream.h"
#include "../base/temporary_folder.h"
#include "formats/recipe/recipe.h"
#include "text/record/record_mapping.h"
#include "train/rewards/prompt_reader.h"

namespace snug::train {
namespace {

using Json = nlohmann::json;
using testing::contains;

class RewardedPrompts : public ::testing::Test {
 protected:
  void SetUp() override {
    std::ifstream stream("tests/goldens/reward_prompts.json");
    golden_ = Json::parse(stream);
    options_.chat_template =
        folder_.write("template.jinja", golden_["chat_template"].get<std::string>()).string();
  }

  std::vector<RewardedPrompt> read(const std::string& text, int64_t most = 0,
                                   const std::string& name = "data.jsonl") {
    const std::string file = folder_.write(name, text).string();
    return rewarded_prompts(recipe_,
                            {{.name = name, .files = {file}, .options = options_, .limit = limit_}},
                            {.most_tokens = most}, tokenizer_);
  }
  RewardedPrompt alone(const std::string& record) {
    std::vector<RewardedPrompt> prompts = read(record);
    EXPECT_EQ(prompts.size(), 1U) << record;
    return prompts.front();
  }
  std::string error_of(const std::string& text, int64_t most = 0) {
    return testing::user_error_of([&] { read(text, most); });
  }
  std::string text_of(const RewardedPrompt& prompt) const { return tokenizer_.decode(prompt.ids); }

  testing::TemporaryFolder folder_;
  formats::Recipe recipe_;
  text::DatasetOptions options_;
  int64_t limit_ = 0;
  Json golden_;
  text::Tokenizer tokenizer_ = text::Tokenizer::from_folder("examples/wordnet");
};

TEST_F(RewardedPrompts, HaveTheIdsOfTrl) {
  ASSERT_EQ(golden_["prompts"].size(), 6U);
  for (const Json& one : golden_["prompts"]) {
    // A file of its own: texts in a file with conversations are conversations, too.
    const RewardedPrompt prompt = alone(one["record"].dump());
    EXPECT_EQ(prompt.ids, one["ids"].get<std::vector<int32_t>>()) << one["record"];
    EXPECT_EQ(prompt.is_conversation, one["record"]["prompt"].is_array());
    EXPECT_EQ(Json::parse(prompt.record.fields), one["record"]);
    EXPECT_EQ(prompt.record.line, 1);
  }
}

TEST_F(RewardedPrompts, AreOfEveryFormThatAsks) {
  struct Case {
    const char* record;
    const char* prompt;
    const char* shown;
    const char* answer;
  };
  const std::vector<Case> cases{
      {R"({"question": "Q", "answer": "A"})", "<user>: Q<assistant>: ", "Q", "A"},
      {R"({"question": "Q", "answer": 5, "choices": ["a"]})", "<user>: Q<assistant>: ", "Q", ""},
      {R"({"messages": [{"role": "user", "content": "Q"}, {"role": "assistant", "content": "A"}]})",
       "<user>: Q<assistant>: ", "Q", "A"},
      {R"({"messages": [{"role": "user", "content": "Q"}], "ground_truth": "A"})",
       "<user>: Q<assistant>: ", "Q", ""},
      {R"({"conversations": "[{\"from\": \"human\", \"value\": \"Q\"}]"})",
       "<user>: Q<assistant>: ", "Q", ""},
      {R"({"prompt": "Q", "completion": "A"})", "Q", "Q", "A"},
      {R"({"prompt": "Q", "system": "S", "gold": "A"})", "<system>: S<user>: Q<assistant>: ", "Q",
       ""},
      {R"({"prompt": "Q", "chosen": "A", "rejected": "B"})", "Q", "Q", ""},
      {R"({"prompt": "Q", "completion": ""})", "Q", "Q", ""}};
  for (const Case& one : cases) {
    const RewardedPrompt prompt = alone(one.record);
    EXPECT_EQ(text_of(prompt), one.prompt) << one.record;
    EXPECT_EQ(prompt.shown, one.shown) << one.record;
    EXPECT_EQ(prompt.record.answer, one.answer) << one.record;
  }
  const RewardedPrompt alpaca = alone(R"({"instruction": "Q", "input": ""})");
  EXPECT_EQ(alpaca.shown, "Q");
  EXPECT_TRUE(contains(text_of(alpaca), "### Instruction:\nQ\n\n### Response:\n"));
  const std::vector<std::string> fields{"prompt=problem"};
  options_.mapping = text::RecordMapping(fields, {});
  const RewardedPrompt mapped = alone(R"({"problem": "Q", "solution": "A"})");
  EXPECT_EQ(text_of(mapped), "Q");
  EXPECT_EQ(mapped.record.fields, R"({"problem": "Q", "solution": "A"})");
}

TEST_F(RewardedPrompts, AreLeftOutWhereTheyAreLongBadOrBeyondALimit) {
  const testing::CapturedStream said(stderr);
  const std::string shorter = R"({"prompt": "Q"})";
  const std::string longer = R"({"prompt": "What is a lake, and what is a river?"})";
  const std::string bad = R"({"nothing": 1})";
  EXPECT_EQ(read(shorter + "\n" + longer + "\n" + bad + "\n" + shorter, 3).size(), 2U);
  EXPECT_TRUE(
      contains(said.text(), "1 of 3 prompts has more than 3 tokens and is left out, first"));
  EXPECT_TRUE(contains(said.text(), "data.jsonl:2\n"));
  EXPECT_TRUE(contains(said.text(), "1 of 4 records (25 %) is left out"));
  limit_ = 2;
  EXPECT_EQ(read(shorter + "\n" + longer + "\n" + shorter).size(), 2U);
  limit_ = 0;
  EXPECT_TRUE(contains(error_of(longer, 3), "all of more than the 3 tokens"));
  recipe_.on_bad_record = formats::OnBadRecord::error;
  EXPECT_TRUE(
      contains(error_of(shorter + "\n" + bad), "expected the fields of one of these forms"));
}

TEST_F(RewardedPrompts, SayWhatAsksNothing) {
  EXPECT_TRUE(contains(error_of(R"({"text": "T"})"), "it is plain text without a question"));
  EXPECT_TRUE(contains(error_of(R"({"prompt": " "})"), "the prompt ('prompt') is empty"));
  EXPECT_TRUE(contains(error_of(R"({"prompt": [{"role": "assistant", "content": "A"}]})"),
                       "the last message of 'prompt' is the assistant's"));
  EXPECT_TRUE(contains(error_of(R"({"messages": [{"role": "assistant", "content": "A"}]})"),
                       "it has an answer alone"));
  EXPECT_TRUE(contains(error_of(""), "no records"));
}

}  // namespace
}  // namespace snug::train
