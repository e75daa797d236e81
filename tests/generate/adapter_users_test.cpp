// Who chooses adapters: the lines of a file of prompts, and a chat.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "../base/captured_stream.h"
#include "base/temporary_folder.h"
#include "generate/chat/chat_model.h"
#include "generate/generate.h"
#include "golden_recipe.h"
#include "small_adapter.h"

namespace snug::testing {
namespace {

using Json = nlohmann::json;

const std::string kAll = kGoldens + "lora_all_linear/adapter";
const std::string kSome = kGoldens + "lora_qv_rslora/adapter";
const std::string kAdapters = "adapters=all=" + kAll + ",some=" + kSome;

// The answers to these lines, in a folder of their own.
std::vector<Json> answers_of(const std::string& lines, std::vector<std::string> words) {
  const TemporaryFolder folder;
  folder.write("prompts.jsonl", lines);
  const std::string output = (folder / "answers.jsonl").string();
  words.insert(words.begin(), {"prompts=" + (folder / "prompts.jsonl").string(), "output=" + output,
                               "temperature=0", "max_new_tokens=6", "logprobs=0", "threads=1"});
  const CapturedStream console(stderr);
  EXPECT_EQ(generate::generate(golden_recipe("grouped_tied", std::move(words)), false), 0);
  std::vector<Json> answers;
  std::ifstream stream(output);
  for (std::string line; std::getline(stream, line);) answers.push_back(Json::parse(line));
  return answers;
}

constexpr const char* kPrompt = R"("ids": [5, 17, 90, 3])";

std::string line_of(const std::string& more) {
  return "{" + std::string(kPrompt) + (more.empty() ? "" : ", " + more) + "}\n";
}

double first_log_probability(const Json& answer) { return answer.at("logprobs").at(0); }

// Under the names that lines have from others, too.
TEST(AdapterUsers, LinesChoose) {
  const std::string lines =
      line_of(R"("adapter": "all")") + line_of("") + line_of(R"("model": "some")") +
      line_of(R"("model": "gpt-4")") + line_of(R"("parameters": {"adapter_id": "all"})") +
      line_of(R"("lora_name": "some", "adapter": null)") + line_of(R"("adapter": "none")");
  const std::vector<Json> mixed = answers_of(lines, {kAdapters});
  ASSERT_EQ(mixed.size(), 7U);
  const double none = first_log_probability(answers_of(line_of(""), {}).at(0));
  const double all = first_log_probability(answers_of(line_of(""), {"adapter=" + kAll}).at(0));
  const double some = first_log_probability(answers_of(line_of(""), {"adapter=" + kSome}).at(0));
  EXPECT_GT(std::abs(all - some), 1e-3);
  const std::vector<double> expected{all, none, some, none, all, some, none};
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(first_log_probability(mixed[i]), expected[i], 1e-5) << i;
  EXPECT_EQ(mixed[0].at("adapter"), "all");
  EXPECT_FALSE(mixed[1].contains("adapter"));
}

TEST(AdapterUsers, LinesAreToldWhatThereIs) {
  const std::string lines = line_of("") + line_of(R"("adapter": "law")");
  const std::vector<Json> known = answers_of(lines, {kAdapters});
  EXPECT_NE(known.at(1).at("error").get<std::string>().find("the adapters are all, some"),
            std::string::npos)
      << known.at(1);
  const std::vector<Json> alone = answers_of(lines, {});
  EXPECT_NE(alone.at(1).at("error").get<std::string>().find("adapters=law=FOLDER gives it"),
            std::string::npos)
      << alone.at(1);
  EXPECT_EQ(answers_of(lines, {"ignore_fields=adapter"}).at(1).count("error"), 0U);
}

TEST(AdapterUsers, OnePromptHasOneAdapter) {
  EXPECT_NE(user_error_of([] {
              generate::generate(golden_recipe("grouped_tied", {kAdapters, "ids=5"}), false);
            }).find("for one prompt give adapter=FOLDER"),
            std::string::npos);
}

// ms-swift's name of the one adapter that is applied.
TEST(AdapterUsers, AFolderAloneIsTheAdapterOfAll) {
  const formats::Recipe recipe = recipe_of({"model=smollm2-135m", "adapters=" + kAll});
  EXPECT_EQ(recipe.adapter, kAll);
  EXPECT_TRUE(recipe.adapters.empty());
}

// Without opening the model again.
TEST(AdapterUsers, AChatGoesOnWithAnother) {
  const TemporaryFolder folder;
  write_adapter(folder / "law");
  const auto recipe = [](const std::string& word) {
    return recipe_of({"model=examples/wordnet", "init=random", "chat_template=plain",
                      "temperature=0", "max_new_tokens=8", "max_length=64", word});
  };
  const text::Conversation question{.messages = {{"user", "What is twine?"}}};
  const auto answer = [&](generate::ChatModel& model) {
    return model.answer(question, [](const std::string&) {}).text;
  };
  const auto stops = [] { return false; };
  generate::ChatModel chat(recipe("adapters=law=" + (folder / "law").string()), stops);
  generate::ChatModel alone(recipe("adapter=" + (folder / "law").string()), stops);
  EXPECT_EQ(chat.adapters(), std::vector<std::string>{"law"});
  EXPECT_EQ(chat.adapter(), "");
  const std::string without = answer(chat);
  chat.use_adapter("law");
  EXPECT_EQ(chat.adapter(), "law");
  const std::string with = answer(chat);
  EXPECT_NE(with, without);
  EXPECT_EQ(with, answer(alone));
  EXPECT_EQ(user_error_of([&] { chat.use_adapter("code"); }),
            "there is no adapter 'code'; there is law");
  EXPECT_EQ(chat.adapter(), "law");
  chat.use_adapter("");
  EXPECT_EQ(answer(chat), without);
}

}  // namespace
}  // namespace snug::testing
