// `snug generate prompts=FILE`: the answers of a file, what lines may say, and a job that goes on.
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/captured_stream.h"
#include "base/error.h"
#include "base/python_pattern.h"
#include "base/temporary_folder.h"
#include "generate/generate.h"
#include "generate/prompts_file/answer_file.h"
#include "golden_recipe.h"

namespace snug::testing {
namespace {

using Json = nlohmann::json;

std::string bytes_of(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

std::vector<Json> json_lines(const std::string& text) {
  std::vector<Json> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(Json::parse(line));
  return lines;
}

// A job of a model of a few thousand weights, in a folder of its own.
class PromptsJob {
 public:
  explicit PromptsJob(const std::string& prompts, const std::string& name = "prompts.jsonl")
      : name_(name) {
    folder_.write(name, prompts);
  }

  // In a folder that the job makes.
  std::filesystem::path output() const { return folder_ / "made/answers.jsonl"; }
  std::string prompts() const { return (folder_ / name_).string(); }
  void write_prompts(const std::string& prompts) const { folder_.write(name_, prompts); }

  formats::Recipe recipe(std::vector<std::string> words) const {
    words.insert(words.begin(), {"prompts=" + prompts(), "output=" + output().string(),
                                 "temperature=0", "max_new_tokens=6"});
    return golden_recipe("basic", std::move(words));
  }
  // With the example's tokenizer and shape.
  formats::Recipe of_texts(std::vector<std::string> words) const {
    formats::Recipe recipe = this->recipe(std::move(words));
    recipe.model = "examples/wordnet";
    recipe.init = formats::Init::random;
    return recipe;
  }

  // What the job says on standard error.
  std::string said(const formats::Recipe& recipe) const {
    const CapturedStream console(stderr);
    EXPECT_EQ(generate::generate(recipe, false), 0);
    return console.text();
  }
  std::vector<Json> answers(const formats::Recipe& recipe) const {
    said(recipe);
    return json_lines(bytes_of(output()));
  }
  std::string refusal(const formats::Recipe& recipe) const {
    const CapturedStream console(stderr);
    try {
      generate::generate(recipe, false);
    } catch (const base::UserError& error) {
      return error.what();
    }
    return "";
  }

 private:
  TemporaryFolder folder_;
  std::string name_;
};

Json alone(const std::vector<std::string>& words, const std::string& model = "") {
  std::vector<std::string> all{"temperature=0", "max_new_tokens=6"};
  all.insert(all.end(), words.begin(), words.end());
  formats::Recipe recipe = golden_recipe("basic", all);
  if (!model.empty()) {
    recipe.model = model;
    recipe.init = formats::Init::random;
  }
  const CapturedStream output(stdout);
  EXPECT_EQ(generate::generate(recipe, true), 0);
  return Json::parse(output.text());
}

constexpr const char* kIdLines =
    "{\"ids\": [5, 6, 7]}\n{\"ids\": [1]}\n\n{\"ids\": [9, 8, 7, 6, 5, 4, 3, 2, 1]}\n"
    "[11, 12]\n{\"prompt\": [3, 1, 4, 1, 5]}\n";

TEST(PromptsFile, AnswersAreThoseOfSingleRunsInTheirOrder) {
  const std::vector<std::string> ids{"ids=5 6 7", "ids=1", "ids=9 8 7 6 5 4 3 2 1", "ids=11 12",
                                     "ids=3 1 4 1 5"};
  for (const char* batch : {"batch=1", "batch=2", "batch=32"}) {
    const PromptsJob job(
        std::string("{\"ids\": [5, 6, 7], \"max_tokens\": 9}\n") +
        std::string(kIdLines).substr(std::string("{\"ids\": [5, 6, 7]}\n").size()));
    const std::vector<Json> answers = job.answers(job.recipe({batch}));
    ASSERT_EQ(answers.size(), ids.size());
    for (size_t i = 0; i < ids.size(); ++i) {
      const Json single = alone({ids[i], i == 0 ? "max_new_tokens=9" : "max_new_tokens=6"});
      for (const char* key : {"ids", "finish_reason", "prompt_tokens", "new_tokens", "text"})
        EXPECT_EQ(answers[i][key], single[key]) << batch << ", line " << i << ", " << key;
      EXPECT_EQ(answers[i]["index"], i);
    }
  }
}

TEST(PromptsFile, FormsOfTexts) {
  const PromptsJob job(
      "{\"prompt\": \"The oregano is\"}\n"
      "\"The oregano is\"\n"
      "{\"text\": \"The oregano is\"}\n"
      "{\"instruction\": \"Say it.\", \"input\": \"\", \"output\": \"It.\"}\n"
      "{\"messages\": [{\"role\": \"user\", \"content\": \"Say it.\"}]}\n"
      "{\"conversations\": [{\"from\": \"human\", \"value\": \"Say it.\"}, "
      "{\"from\": \"gpt\", \"value\": \"It.\"}]}\n"
      "{\"prompt\": [{\"role\": \"user\", \"content\": \"Say it.\"}]}\n"
      "{\"custom_id\": \"a\", \"method\": \"POST\", \"url\": \"/v1/chat/completions\", \"body\": "
      "{\"model\": \"m\", \"messages\": [{\"role\": \"user\", \"content\": \"Say it.\"}], "
      "\"max_tokens\": 6}}\n"
      "{\"question\": \"Say it.\"}\n");
  const std::string model = "examples/wordnet";
  const Json raw = alone({"prompt=The oregano is"}, model);
  const Json alpaca = alone({"prompt=Say it.", "prompt_format=alpaca"}, model);
  const Json chat = alone({"prompt=Say it.", "prompt_format=chat", "chat_template=plain"}, model);
  const std::vector<Json> answers = job.answers(job.of_texts({"chat_template=plain"}));
  ASSERT_EQ(answers.size(), 9U);
  const std::vector<Json> expected{raw, raw, raw, alpaca, chat, chat, chat, chat, chat};
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(answers[i]["text"], expected[i]["text"]) << i;
    EXPECT_EQ(answers[i]["prompt_tokens"], expected[i]["prompt_tokens"]) << i;
    EXPECT_FALSE(answers[i].contains("ids")) << i;
  }
  EXPECT_EQ(answers[3]["output"], "It.");
  EXPECT_EQ(answers[7]["custom_id"], "a");
  EXPECT_FALSE(answers[7].contains("model"));
}

TEST(PromptsFile, OtherFieldsArePassedOn) {
  const PromptsJob job(
      "{\"ids\": [5], \"id\": 17, \"index\": 3, \"answer\": {\"b\": [1.5]}, \"text\": null}\n");
  const Json answer = job.answers(job.recipe({})).at(0);
  EXPECT_EQ(answer["id"], 17);
  EXPECT_EQ(answer["index"], 0);
  EXPECT_EQ(answer["input_index"], 3);
  EXPECT_EQ(answer["answer"], (Json{{"b", {1.5}}}));
}

// Each line is a prompt; nothing else is in such a file.
TEST(PromptsFile, PlainTextHasAPromptInEachLine) {
  const PromptsJob job("The oregano is\r\n\nThe dog \"is\"\n", "prompts.txt");
  const std::vector<Json> answers = job.answers(job.of_texts({}));
  ASSERT_EQ(answers.size(), 2U);
  EXPECT_EQ(answers[0]["text"], alone({"prompt=The oregano is"}, "examples/wordnet")["text"]);
  EXPECT_EQ(answers[1]["text"], alone({"prompt=The dog \"is\""}, "examples/wordnet")["text"]);
}

TEST(PromptsFile, TablesHaveSettingsInSomeRows) {
  const PromptsJob job("prompt,max_tokens\n\"The oregano, is\",2\nThe dog is,\n", "prompts.csv");
  const std::vector<Json> answers = job.answers(job.of_texts({}));
  EXPECT_EQ(answers.at(0)["new_tokens"], 2);
  EXPECT_EQ(answers.at(1)["text"], alone({"prompt=The dog is"}, "examples/wordnet")["text"]);
}

TEST(PromptsFile, LinesHaveSettingsOfTheirOwn) {
  const Json whole = alone({"ids=5 6 7"});
  const int third = whole["ids"][2];
  const PromptsJob job(
      Json{{"ids", {5, 6, 7}}, {"max_tokens", 2}}.dump() + "\n" +
      Json{{"ids", {5, 6, 7}}, {"stop_token_ids", {third}}}.dump() + "\n" +
      Json{{"ids", {5, 6, 7}}, {"temperature", 2}, {"seed", 7}}.dump() + "\n" +
      Json{{"ids", {5, 6, 7}}, {"sampling_params", {{"max_tokens", 3}}}}.dump() + "\n" +
      Json{{"ids", {5, 6, 7}}, {"logprobs", true}, {"top_logprobs", 2}}.dump() + "\n");
  const std::vector<Json> answers = job.answers(job.recipe({}));
  EXPECT_EQ(answers[0]["new_tokens"], 2);
  EXPECT_EQ(answers[1]["finish_reason"], "stop");
  EXPECT_EQ(answers[1]["ids"].back(), third);
  EXPECT_EQ(answers[2]["ids"], alone({"ids=5 6 7", "temperature=2", "seed=7"})["ids"]);
  EXPECT_EQ(answers[3]["new_tokens"], 3);
  ASSERT_EQ(answers[4]["logprobs"].size(), 6U);
  ASSERT_EQ(answers[4]["top_logprobs"][0].size(), 2U);
  // Greedy: the likeliest token is the one that was chosen.
  EXPECT_EQ(answers[4]["top_logprobs"][0][0]["id"], answers[4]["ids"][0]);
  EXPECT_EQ(answers[4]["top_logprobs"][0][0]["logprob"], answers[4]["logprobs"][0]);
}

// Equal prompts draw differently, and the same in every run.
TEST(PromptsFile, LinesHaveFormsOfTheirOwn) {
  const PromptsJob job(R"({"prompt": "The dog", "regex": "[a-d]{2}"})"
                       "\n"
                       R"({"prompt": "The dog"})"
                       "\n"
                       R"({"prompt": "The dog", "guided_regex": "(?=a)b"})");
  const std::vector<Json> answers = job.answers(job.of_texts({"regex=(yes|no)"}));
  ASSERT_EQ(answers.size(), 3U);
  EXPECT_TRUE(base::PythonPattern("[a-d]{2}", base::PythonPattern::Where::whole)
                  .matches(answers[0]["text"].get<std::string>()))
      << answers[0];
  EXPECT_EQ(answers[0]["finish_reason"], "stop");
  EXPECT_TRUE(answers[1]["text"] == "yes" || answers[1]["text"] == "no") << answers[1];
  EXPECT_TRUE(contains(answers[2]["error"].get<std::string>(), "a lookahead at byte 0"))
      << answers[2];
}

TEST(PromptsFile, EachLineDrawsForItself) {
  const PromptsJob job("{\"ids\": [5]}\n{\"ids\": [5]}\n{\"ids\": [5]}\n");
  const std::vector<Json> answers = job.answers(job.recipe({"temperature=2"}));
  EXPECT_NE(answers[0]["ids"], answers[1]["ids"]);
  EXPECT_NE(answers[1]["ids"], answers[2]["ids"]);
  EXPECT_EQ(answers[0]["ids"], alone({"ids=5", "temperature=2"})["ids"]);
}

constexpr const char* kBadLines =
    "{\"ids\": [5]}\n{\"custom_id\": \"b\", \"ids\": [5, 131]}\n{\"nothing\": 1}\n{\"ids\": \n"
    "{\"ids\": [6], \"n\": 2}\n{\"ids\": [6], \"temperature\": -1}\n{\"ids\": []}\n"
    "{\"ids\": [6], \"max_tokens\": 100000}\n{\"ids\": [6]}\n";

TEST(PromptsFile, ALineThatCannotBeAskedHasAnErrorInItsPlace) {
  const PromptsJob job(kBadLines);
  const std::string said = job.said(job.recipe({}));
  EXPECT_TRUE(contains(said, "7 of 9 lines")) << said;
  const std::vector<Json> answers = json_lines(bytes_of(job.output()));
  ASSERT_EQ(answers.size(), 9U);
  const std::vector<std::string> words{
      "",         "131",         "expected prompt, messages", "broken JSON",
      "'n' asks", "temperature", "the prompt is empty",       "positions",
      ""};
  for (size_t i = 0; i < words.size(); ++i) {
    EXPECT_EQ(answers[i]["index"], i);
    EXPECT_EQ(answers[i].contains("error"), !words[i].empty()) << answers[i];
    if (words[i].empty()) continue;
    const std::string error = answers[i]["error"];
    EXPECT_TRUE(contains(error, words[i])) << error;
    EXPECT_TRUE(contains(error, "prompts.jsonl:" + std::to_string(i + 1))) << error;
  }
  EXPECT_EQ(answers[1]["custom_id"], "b");
  EXPECT_EQ(answers[8]["ids"], alone({"ids=6"})["ids"]);
}

TEST(PromptsFile, BadLinesMayBeRefused) {
  const PromptsJob job(kBadLines);
  const std::string why = job.refusal(job.recipe({"on_bad_record=error"}));
  EXPECT_TRUE(contains(why, "7 of 9 lines cannot be asked")) << why;
  EXPECT_TRUE(contains(why, "broken JSON")) << why;
  EXPECT_FALSE(std::filesystem::exists(job.output()));
  job.write_prompts("{\"nothing\": 1}\n");
  EXPECT_TRUE(contains(job.refusal(job.recipe({})), "no line can be asked"));
  job.write_prompts("");
  EXPECT_TRUE(contains(job.refusal(job.recipe({})), "holds no prompts"));
}

// Wherever it is cut, the file ends as it would have.
TEST(PromptsFile, GoesOnAfterTheLastWholeLine) {
  const PromptsJob job(kIdLines);
  const formats::Recipe recipe = job.recipe({"temperature=1", "batch=2"});
  job.said(recipe);
  const std::string whole = bytes_of(job.output());
  const size_t second = whole.find('\n', whole.find('\n') + 1);
  for (const size_t bytes :
       {size_t{0}, size_t{1}, second, second + 1, second + 9, whole.size() - 1}) {
    std::filesystem::resize_file(job.output(), bytes);
    job.said(job.recipe({"temperature=1", "batch=3"}));
    EXPECT_EQ(bytes_of(job.output()), whole) << "cut at " << bytes;
  }
  EXPECT_TRUE(contains(job.said(recipe), "has all 5 answers already"));
  EXPECT_EQ(bytes_of(job.output()), whole);
}

TEST(PromptsFile, AChangedJobIsRefused) {
  const PromptsJob job(kIdLines);
  job.said(job.recipe({}));
  const std::string whole = bytes_of(job.output());
  const std::string setting = job.refusal(job.recipe({"temperature=0.5"}));
  EXPECT_TRUE(contains(setting, "was begun with temperature=0, and this job has temperature=0.5"))
      << setting;
  job.write_prompts("{\"ids\": [5, 6]}\n");
  const std::string prompts = job.refusal(job.recipe({}));
  EXPECT_TRUE(contains(prompts, "other prompts")) << prompts;
  job.write_prompts(kIdLines);
  std::ofstream(job.output(), std::ios::app) << "{\"index\": 9}\n";
  const std::string changed = job.refusal(job.recipe({}));
  EXPECT_TRUE(contains(changed, "line 6 is not the answer")) << changed;
  EXPECT_EQ(bytes_of(job.output()), whole + "{\"index\": 9}\n");
  std::filesystem::remove(job.output().string() + ".job.json");
  EXPECT_TRUE(contains(job.refusal(job.recipe({})), "is there already"));
}

// The second finds the file locked before it says in the job file whose answers they are.
TEST(AnswerFile, ASecondJobChangesNothingOfTheFirst) {
  const TemporaryFolder folder;
  const auto path = folder / "answers.jsonl";
  const Json first{{"settings", {{"seed", "1"}}}, {"prompts", 1}, {"model_files", 1}};
  Json second = first;
  second["settings"]["seed"] = "2";
  generate::AnswerFile answers(path, first);
  const auto open_second = [&] { generate::AnswerFile(path, second); };
  EXPECT_TRUE(contains(user_error_of(open_second), "writes"));
  EXPECT_EQ(Json::parse(bytes_of(generate::job_file_of(path))), first);
}

TEST(AnswerFile, WithoutAnAnswerNothingStays) {
  const TemporaryFolder folder;
  const auto path = folder / "answers.jsonl";
  const Json job{{"settings", Json::object()}};
  { const generate::AnswerFile answers(path, job); }
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_FALSE(std::filesystem::exists(generate::job_file_of(path)));
  { generate::AnswerFile(path, job).write("{\"index\": 0}"); }
  EXPECT_EQ(generate::AnswerFile(path, job).lines(), 1);
}

TEST(AnswerFile, ADamagedJobFileSaysWhatToDo) {
  const TemporaryFolder folder;
  const auto path = folder / "answers.jsonl";
  const Json job{{"settings", Json::object()}};
  { generate::AnswerFile(path, job).write("{\"index\": 0}"); }
  for (const char* damaged : {"", "{\"settings\": ", "[]", "3", "{}", "{\"settings\": 1}"}) {
    folder.write("answers.jsonl.job.json", damaged);
    const std::string error = user_error_of([&] { generate::AnswerFile(path, job); });
    EXPECT_TRUE(contains(error, "is damaged")) << damaged << error;
    EXPECT_TRUE(contains(error, "remove both")) << error;
  }
}

TEST(PromptsFile, TheTextOfATemplateBelongsToTheJob) {
  const PromptsJob job("{\"question\": \"What is twine?\"}\n{\"question\": \"What is a cord?\"}\n");
  const TemporaryFolder folder;
  const auto chat = folder.write("chat.jinja", "{{ messages[0].content }} A:");
  const formats::Recipe recipe = job.of_texts({"chat_template=" + chat.string()});
  job.said(recipe);
  EXPECT_EQ(job.refusal(recipe), "");
  folder.write("chat.jinja", "{{ messages[0].content }} B:");
  EXPECT_TRUE(contains(job.refusal(recipe), "another text of the chat template"));
}

// Answers may lie in the model's folder, and are no part of the model.
TEST(PromptsFile, AnswersNextToTheModelAreNotOfIt) {
  const PromptsJob job(kIdLines);
  const TemporaryFolder folder;
  std::filesystem::copy(kGoldens + "basic/model", folder.path());
  formats::Recipe recipe = job.recipe({});
  recipe.model = folder.path().string();
  for (const char* name : {"answers.jsonl", "answers.json"}) {
    recipe.output = (folder / name).string();
    job.said(recipe);
    EXPECT_TRUE(contains(job.said(recipe), "has all 5 answers already")) << name;
  }
}

TEST(PromptsFile, AFinishedJobIsToldAsJsonToo) {
  const PromptsJob job(kIdLines);
  const auto told = [&] {
    const CapturedStream console(stderr);
    const CapturedStream output(stdout);
    EXPECT_EQ(generate::generate(job.recipe({}), true), 0);
    return Json::parse(output.text());
  };
  const Json first = told();
  const Json second = told();
  EXPECT_EQ(second["answers"], 5);
  EXPECT_EQ(second["new_tokens"], 0);
  for (const auto& [key, value] : first.items()) EXPECT_TRUE(second.contains(key)) << key;
}

TEST(PromptsFile, KeysThatContradict) {
  const PromptsJob job(kIdLines);
  EXPECT_TRUE(contains(job.refusal(job.recipe({"ids=5"})), "next to ids"));
  formats::Recipe onto_itself = job.recipe({});
  onto_itself.output = job.prompts();
  EXPECT_TRUE(contains(job.refusal(onto_itself), "the file of the prompts"));
  EXPECT_EQ(bytes_of(job.prompts()), kIdLines);
  formats::Recipe no_prompts = job.recipe({"ids=5"});
  no_prompts.prompts.clear();
  EXPECT_TRUE(contains(job.refusal(no_prompts), "give prompts=FILE"));
  EXPECT_TRUE(contains(job.refusal(job.of_texts({"system=Be brief."})), "system"));
}

// No line of such a file could be asked, so that one message says it.
TEST(PromptsFile, WhatNeedsATemplateSaysSo) {
  const PromptsJob job("{\"question\": \"What is twine?\"}\n{\"nothing\": 1}\n");
  const std::string why = job.refusal(job.of_texts({}));
  EXPECT_TRUE(contains(why, "has no chat template")) << why;
  EXPECT_TRUE(contains(why, "prompt_format=raw")) << why;
  EXPECT_EQ(job.answers(job.of_texts({"prompt_format=raw"})).at(0)["text"],
            alone({"prompt=What is twine?"}, "examples/wordnet")["text"]);
}

TEST(PromptsFile, WithoutAFileAnswersArePrinted) {
  const PromptsJob job(kIdLines);
  formats::Recipe recipe = job.recipe({});
  recipe.output.clear();
  const CapturedStream console(stderr);
  const CapturedStream output(stdout);
  EXPECT_EQ(generate::generate(recipe, false), 0);
  EXPECT_EQ(json_lines(output.text()).size(), 5U);
}

}  // namespace
}  // namespace snug::testing
