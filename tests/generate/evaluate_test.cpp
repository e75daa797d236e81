// Exact match, counted on answers that the model itself gave before.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/captured_stream.h"
#include "engine/questions/prompt.h"
#include "formats/recipe/recipe.h"
#include "generate/evaluation/evaluate.h"
#include "generate/evaluation/figures.h"
#include "generate/questions.h"
#include "golden_recipe.h"
#include "scores/bleu.h"
#include "scores/edit_distance.h"
#include "text/chat/jinja/values/python_text.h"
#include "text/row/dataset.h"

namespace snug::testing {
namespace {

using Json = nlohmann::json;

formats::Recipe evaluation(const std::filesystem::path& data, std::vector<std::string> words = {}) {
  words.insert(words.begin(), {"model=examples/wordnet", "init=random", "max_new_tokens=4",
                               "data=" + data.string()});
  return recipe_of(std::move(words));
}

std::string output_of(const formats::Recipe& recipe, bool json) {
  const CapturedStream output(stdout);
  EXPECT_EQ(generate::evaluate(recipe, json), 0);
  return output.text();
}

std::string lines_of(const std::vector<Json>& records) {
  std::string text;
  for (const Json& record : records) text += record.dump() + "\n";
  return text;
}

TEST(Evaluate, CountsAnswersThatEqualTheExpectedOnes) {
  const TemporaryFolder folder;
  std::vector<Json> records;
  for (int i = 0; i < 7; ++i)
    records.push_back({{"instruction", fmt::format("Say {:x>{}}", "", 3 * i + 1)},
                       {"input", i % 2 == 0 ? "" : "some context"},
                       {"output", "not this"}});
  const auto data = folder.write("data.jsonl", lines_of(records));
  const Json before = Json::parse(output_of(evaluation(data), true));
  EXPECT_EQ(before["correct"], 0);
  EXPECT_EQ(before["total"], 7);
  for (size_t i = 0; i < records.size(); ++i) {
    EXPECT_TRUE(
        contains(before["answers"][i]["question"], records[i]["instruction"].get<std::string>()));
    if (i != 2)
      records[i]["output"] =
          fmt::format(" {}\n", before["answers"][i]["answer"].get<std::string>());
  }
  const auto known = folder.write("known.jsonl", lines_of(records));
  for (const char* batch : {"batch=1", "batch=3", "batch=32"}) {
    const Json after = Json::parse(output_of(evaluation(known, {batch}), true));
    EXPECT_EQ(after["correct"], 6) << batch;
    EXPECT_DOUBLE_EQ(after["exact_match"], 6.0 / 7.0);
    EXPECT_FALSE(after["answers"][2]["correct"]);
  }
  const std::string text = output_of(evaluation(known), false);
  EXPECT_TRUE(contains(text, "exact match: 6 of 7 (85.7 %)"));
  EXPECT_TRUE(contains(text, "expected not this"));
}

// Figures of eval_metrics are those of src/scores of the same texts, which tests/scores compares
// with other people's.
TEST(Evaluate, MetricsAreThoseOfTheAnswers) {
  const TemporaryFolder folder;
  const auto data = folder.write(
      "data.jsonl", lines_of({{{"instruction", "Count."}, {"output", "one 2 three"}},
                              {{"instruction", "Count on."}, {"output", "It is 4, a kind of 5."}},
                              {{"instruction", "Stop."}, {"output", "6"}}}));
  const std::string metrics = "eval_metrics=exact,edit_distance,rougeL,bleu,regex:(\\w{1,9})";
  const Json result = Json::parse(output_of(evaluation(data, {metrics}), true));
  std::vector<double> distances;
  std::vector<scores::ScoredAnswer> texts;
  for (const Json& answer : result["answers"]) {
    texts.push_back({answer["answer"].get_ref<const std::string&>(),
                     answer["expected"].get_ref<const std::string&>()});
    EXPECT_EQ(answer["scores"].size(), 5U);
    distances.push_back(answer["scores"]["edit_distance"].get<double>());
    EXPECT_EQ(distances.back(), scores::edit_distance(text::jinja::strip(texts.back().answer,
                                                                         text::jinja::Side::both),
                                                      texts.back().reference));
  }
  ASSERT_EQ(distances.size(), 3U);
  EXPECT_GT(distances[0], 0);
  const generate::Figure mean = generate::mean_figure(distances);
  EXPECT_DOUBLE_EQ(result["metrics"]["edit_distance"], mean.value);
  EXPECT_DOUBLE_EQ(result["metrics"]["edit_distance_stderr"], *mean.standard_error);
  EXPECT_DOUBLE_EQ(result["metrics"]["bleu"], scores::corpus_bleu(texts));
  EXPECT_TRUE(result["metrics"]["bleu_stderr"].is_null());
  EXPECT_EQ(result["metrics"]["exact"], result["exact_match"]);
  const std::string text = output_of(evaluation(data, {metrics}), false);
  EXPECT_TRUE(contains(text, fmt::format("edit_distance: {:.4f}, standard error {:.4f}\n",
                                         mean.value, *mean.standard_error)))
      << text;
  EXPECT_TRUE(contains(text, "regex:(\\w{1,9}): ")) << text;
}

TEST(Evaluate, MetricsThatHaveNothingToCompareAreRefused) {
  const TemporaryFolder folder;
  const auto data =
      folder.write("data.jsonl", lines_of({{{"instruction", "Count."}, {"output", "1"}},
                                           {{"instruction", "Name."}, {"output", "twine"}}}));
  const auto error_of = [&](const formats::Recipe& recipe) {
    return user_error_of([&] { generate::evaluate(recipe, true); });
  };
  const std::string reference = error_of(evaluation(data, {"eval_metrics=number"}));
  EXPECT_TRUE(contains(reference, "data.jsonl:2: the expected answer 'twine' has no number"))
      << reference;
  EXPECT_TRUE(
      contains(error_of(evaluation(data, {"eval_metrics=rouge"})), "there is no such score"));
  const std::string model = "model=examples/wordnet";
  EXPECT_TRUE(contains(
      error_of(recipe_of({model, "tasks=tests/goldens/evaluation/all.yaml", "eval_metrics=bleu"})),
      "metric_list"));
  EXPECT_TRUE(contains(
      error_of(recipe_of({model, "data=tests/goldens/evaluation/text.txt", "eval_metrics=bleu"})),
      "of texts there is their perplexity alone"));
}

// What evaluation asks is what training put before the answer, id by id.
TEST(Evaluate, PromptsAreThoseOfTraining) {
  const TemporaryFolder folder;
  const std::vector<std::vector<Json>> files{
      {{{"instruction", "Name it."}, {"output", "a kind of cord"}},
       {{"instruction", "Name it."}, {"input", "twine"}, {"output", "a kind of cord"}}},
      {{{"prompt", "What is twine? "}, {"completion", "a kind of cord"}}},
      {{{"messages", Json::array({{{"role", "user"}, {"content", "What is twine?"}},
                                  {{"role", "assistant"}, {"content", "a kind of cord"}}})}}},
      {{{"question", "What is twine?"}, {"response", "a kind of cord"}}},
      {{{"prompt", "What is twine?"}, {"completion", "a kind of cord"}},
       {{"prompt", "What is it?"}, {"completion", "a kind of cord"}, {"system", "Be brief."}},
       {{"prompt", "What is a cord?"}, {"completion", "a kind of cord"}}},
      {{{"prompt", Json::array({{{"role", "user"}, {"content", "What is twine?"}}})},
        {"completion", Json::array({{{"role", "assistant"}, {"content", "a kind of cord"}}})}}}};
  const auto tokenizer = text::Tokenizer::from_folder("examples/wordnet");
  for (const std::vector<Json>& records : files) {
    const auto path = folder.write("data.jsonl", lines_of(records));
    const formats::Recipe recipe = evaluation(path, {"chat_template=plain"});
    const auto questions = generate::read_questions(recipe, tokenizer);
    const text::Dataset training =
        text::load_dataset(path.string(), tokenizer, {.max_length = 512, .chat_template = "plain"});
    ASSERT_EQ(questions.size(), records.size());
    for (size_t i = 0; i < questions.size(); ++i) {
      const auto document = static_cast<int64_t>(i);
      engine::Ids prompt(static_cast<size_t>(training.documents.length(document)));
      training.documents.read(document, prompt);
      prompt.erase(std::find_if(prompt.begin(), prompt.end(), text::DocumentStore::is_target),
                   prompt.end());
      EXPECT_EQ(questions[i].ids, prompt) << records[i];
      EXPECT_EQ(questions[i].expected, "a kind of cord");
    }
  }
}

// A record may carry the fields of two forms; data_format says which are meant.
TEST(Evaluate, ReadsTheFormThatDataFormatNames) {
  const TemporaryFolder folder;
  const auto path = folder.write("data.jsonl", lines_of({{{"instruction", "Name it."},
                                                          {"output", "a cord"},
                                                          {"prompt", "What is twine? "},
                                                          {"completion", "a string"}}}));
  const auto tokenizer = text::Tokenizer::from_folder("examples/wordnet");
  const auto expected = [&](std::vector<std::string> words) {
    return generate::read_questions(evaluation(path, std::move(words)), tokenizer)[0].expected;
  };
  EXPECT_EQ(expected({}), "a cord");
  EXPECT_EQ(expected({"data_format=prompt_completion"}), "a string");
  EXPECT_TRUE(contains(user_error_of([&] { expected({"data_format=messages"}); }), "messages"));
}

TEST(Evaluate, TellsOfAllRecordsThatCannotBeAsked) {
  const TemporaryFolder folder;
  const Json bad = {{"role", "assistant"}, {"content", "a"}, {"weight", 0}};
  const auto path = folder.write(
      "data.jsonl",
      lines_of({{{"prompt", "a"}, {"completion", " "}},
                {{"prompt", "a"}, {"completion", "b"}},
                {{"messages", Json::array({{{"role", "assistant"}, {"content", "b"}}, bad})}},
                {{"prompt", "a"}, {"completion", "b"}, {"label", false}}}));
  const auto tokenizer = text::Tokenizer::from_folder("examples/wordnet");
  const auto read = [&](std::vector<std::string> words) {
    words.push_back("chat_template=plain");
    return generate::read_questions(evaluation(path, std::move(words)), tokenizer);
  };
  const std::string error = user_error_of([&] { read({"on_bad_record=error"}); });
  for (const char* part : {"3 of 4 records", "data.jsonl:1: record 1: the answer",
                           "data.jsonl:3: record 3: the last message says", "objective=kto"})
    EXPECT_TRUE(contains(error, part));
  EXPECT_EQ(read({}).size(), 1U);
  EXPECT_EQ(read({"ignore_fields=[label]"}).size(), 2U);
  EXPECT_EQ(read({"ignore_fields=[label,another]"}).size(), 2U);
  EXPECT_TRUE(contains(user_error_of([&] { read({"data.repeats=2"}); }), "asked once"));
}

TEST(Evaluate, TokensHoldNoQuestion) {
  const TemporaryFolder folder;
  const auto path = folder.write("data.jsonl", "{\"input_ids\": [1, 2]}\n");
  const auto tokenizer = text::Tokenizer::from_folder("examples/wordnet");
  const auto read = [&] { generate::read_questions(evaluation(path), tokenizer); };
  EXPECT_TRUE(contains(user_error_of(read), "data.jsonl:1: record 1: it holds tokens"));
}

TEST(Evaluate, SaysWhatTheTemplateLeavesOut) {
  const TemporaryFolder folder;
  const auto data = folder.write(
      "data.jsonl",
      R"({"tools": [{"type": "function", "function": {"name": "f"}}], "messages": )"
      R"([{"role": "user", "name": "Ann", "content": "q"}, {"role": "assistant", "content": "a"}]})");
  const CapturedStream said(stderr);
  output_of(evaluation(data, {"chat_template=plain", "ignore_fields=wieght"}), true);
  const std::string text = said.text();
  EXPECT_TRUE(contains(text,
                       "the chat template does not write 'name' of user messages in 1 record "
                       "(the first is 1), 'tools' in 1 record (the first is 1)"))
      << text;
  EXPECT_TRUE(contains(text, "no record has 'wieght', which ignore_fields names")) << text;
}

}  // namespace
}  // namespace snug::testing
