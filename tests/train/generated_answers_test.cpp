// Whole runs whose evaluations generate answers: they are what snug evaluate gets of the saved
// adapter, by programs that the plan contains, and nothing of training changes by them.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "../base/captured_stream.h"
#include "../cli/tiny_model.h"
#include "backends/recipe_backend.h"
#include "base/file.h"
#include "engine/questions/prompt.h"
#include "formats/recipe/recipe.h"
#include "generate/evaluation/asked_data.h"
#include "plan/spec/spec.h"
#include "runtime/loading/load_weights.h"
#include "train/train.h"

namespace snug::train {
namespace {

using Json = nlohmann::json;

constexpr const char* kAnswered =
    "{\"prompt\": \"Say a.\", \"completion\": \"a\"}\n"
    "{\"prompt\": \"Say b.\", \"completion\": \"b\"}\n"
    "{\"prompt\": \"Say c.\", \"completion\": \"c\"}\n";
// Two of these have other answers than those that are trained.
constexpr const char* kOther =
    "{\"prompt\": \"Say a.\", \"completion\": \"a\"}\n"
    "{\"prompt\": \"Name the longest of them.\", \"completion\": \"a river\"}\n"
    "{\"prompt\": \"Say c.\", \"completion\": \"not this\"}\n"
    "{\"prompt\": \"Say b.\", \"completion\": \"b\"}\n";

class GeneratedAnswersRuns : public ::testing::Test {
 protected:
  GeneratedAnswersRuns() {
    cli::write_tiny_shape(folder_, "shape");
    folder_.write("data.jsonl", kAnswered);
    folder_.write("other.jsonl", kOther);
    std::string many;
    for (int i = 0; i < 24; ++i) many += kOther;
    folder_.write("many.jsonl", many);
    folder_.write("sets.yaml", "eval_data:\n  seen: " + path("data.jsonl").string() +
                                   "\n  other: " + path("other.jsonl").string() + "\n");
    folder_.write("texts.jsonl", "{\"text\": \"No question.\"}\n");
  }

  std::filesystem::path path(const std::string& name) const { return folder_ / name; }

  // Of two words for one key the last counts.
  formats::Recipe recipe(const std::string& output, const std::string& more,
                         const std::string& file = "") const {
    std::vector<std::string> words{"model=" + path("shape").string(),
                                   "init=random",
                                   "max_length=64",
                                   "compute_dtype=fp32",
                                   "threads=1",
                                   "lr_scheduler_type=constant",
                                   "guards=none"};
    if (more.find("method=") == std::string::npos) words.push_back("method=lora");
    if (file.empty() && more.find("eval_data=") == std::string::npos &&
        more.find("val_set") == std::string::npos)
      words.push_back("eval_data=" + path("other.jsonl").string());
    words.push_back("data=" + path("data.jsonl").string());
    words.push_back("output_dir=" + path(output).string());
    std::istringstream stream(more);
    for (std::string word; stream >> word;) words.push_back(word);
    return formats::load_recipe(file, words);
  }
  void run(const std::string& output, const std::string& more, const std::string& file = "") const {
    ASSERT_EQ(train(recipe(output, more, file)), 0);
  }
  std::string failure_of(const std::string& more) const {
    return testing::user_error_of([&] { train(recipe("refused", more)); });
  }

  std::vector<Json> lines(const std::string& file) const {
    std::vector<Json> lines;
    std::istringstream text(base::read_text_file(path(file)));
    for (std::string line; std::getline(text, line);) lines.push_back(Json::parse(line));
    return lines;
  }
  std::vector<Json> evaluations(const std::string& name) const {
    std::vector<Json> all = lines(name + "/metrics.jsonl");
    std::erase_if(all, [](const Json& line) { return !line.contains("eval_loss"); });
    return all;
  }
  std::vector<double> losses(const std::string& name) const {
    std::vector<double> losses;
    for (const Json& line : lines(name + "/metrics.jsonl"))
      if (line.contains("loss")) losses.push_back(line["loss"]);
    return losses;
  }
  Json json(const std::string& file) const { return Json::parse(base::read_text_file(path(file))); }

  // What `snug evaluate` gets of a run's adapter.
  generate::AskedData asked(const std::string& name, const std::string& data,
                            const std::string& more) const {
    std::vector<std::string> words{"data=" + path(data).string(), "compute_dtype=fp32",
                                   "threads=1"};
    if (more.find("model=") == std::string::npos)
      for (const std::string& word : {"model=" + path("shape").string(), std::string("init=random"),
                                      "adapter=" + path(name + "/adapter").string()})
        words.push_back(word);
    std::istringstream stream(more);
    for (std::string word; stream >> word;) words.push_back(word);
    const formats::Recipe recipe = formats::load_recipe("", words);
    const models::ModelSource source = runtime::open_model(recipe);
    const text::Tokenizer tokenizer = engine::open_tokenizer(recipe, source);
    return generate::asked_data({recipe, source, tokenizer});
  }

  testing::TemporaryFolder folder_;
  testing::CapturedStream said_{stderr};
};

TEST_F(GeneratedAnswersRuns, AnswersAreThoseOfEvaluateWithTheSavedAdapter) {
  run("run",
      "max_steps=60 learning_rate=0.02 lora_r=8 eval_generate=4 max_new_tokens=6 batch=3 "
      "eval_metrics=exact,rougeL,bleu,edit_similarity eval_on_start=true report_to=tensorboard");
  const std::vector<Json> found = evaluations("run");
  ASSERT_EQ(found.size(), 2);
  const generate::AskedData expected = asked(
      "run", "other.jsonl", "max_new_tokens=6 eval_metrics=exact,rougeL,bleu,edit_similarity");
  for (const generate::Figure& figure : expected.figures)
    EXPECT_NEAR(found.back()["eval_" + figure.metric].get<double>(), figure.value, 1e-12)
        << figure.metric;
  EXPECT_EQ(found.back()["eval_exact"], expected.exact_match.value);
  EXPECT_GT(found.back()["eval_exact"], found.front()["eval_exact"]) << "it has learned";
  EXPECT_LT(found.back()["eval_exact"], 1) << "one answer is not what is expected";

  std::vector<Json> samples = lines("run/samples.jsonl");
  ASSERT_EQ(samples.size(), 8) << "four of each evaluation";
  EXPECT_EQ(samples.front()["step"], 0);
  EXPECT_NE(samples[0]["answer"], samples[4]["answer"]);
  for (size_t i = 0; i < 4; ++i) {
    const Json& sample = samples[4 + i];
    EXPECT_EQ(sample["step"], 60);
    EXPECT_EQ(sample["prompt"], expected.questions[i].shown);
    EXPECT_EQ(sample["expected"], expected.questions[i].expected);
    EXPECT_EQ(sample["answer"], expected.answers[i].text);
    EXPECT_EQ(sample["scores"]["exact"], expected.answers[i].is_correct ? 1 : 0);
  }

  // The page and TensorBoard have them too.
  EXPECT_TRUE(
      testing::contains(base::read_text_file(path("run/report.html")), "Answers after step 60"));
  std::string events;
  for (const auto& entry : std::filesystem::directory_iterator(path("run")))
    if (entry.path().filename().string().starts_with("events."))
      events = base::read_text_file(entry.path());
  EXPECT_TRUE(testing::contains(events, "eval/samples"));
  EXPECT_TRUE(testing::contains(events, "eval/exact"));
}

TEST_F(GeneratedAnswersRuns, TrainingHasTheSameBitsAndThePlanHoldsTheArena) {
  const std::string job = "max_steps=4 learning_rate=0.02 eval_steps=2 packing=false ";
  const std::string many = "eval_data=" + path("many.jsonl").string();
  run("without", job + many);
  run("with", job + many + " eval_generate=40 max_new_tokens=120");
  EXPECT_EQ(losses("with"), losses("without"));
  const auto adapter = [&](const std::string& name) {
    return base::read_text_file(path(name) / "adapter/adapter_model.safetensors");
  };
  EXPECT_EQ(adapter("with"), adapter("without"));

  const Json planned = json("with/plan.json");
  EXPECT_EQ(json("with/measured.json")["device"]["peak_bytes"], planned["device"]["peak_bytes"]);
  EXPECT_GT(planned["device"]["peak_bytes"], json("without/plan.json")["device"]["peak_bytes"]);
  const std::string program = planned["device"]["peak"]["program"];
  EXPECT_TRUE(program.starts_with("prefill") || program.starts_with("decode")) << program;
  EXPECT_TRUE(testing::contains(said_.text(), "where evaluations generate answers"));
  EXPECT_GT(planned["evaluation"]["answers_seconds"], 0);
  EXPECT_GT(json("with/measured.json")["evaluation"]["answers_seconds"], 0);
}

TEST_F(GeneratedAnswersRuns, ARunThatGoesOnHasTheSameAnswers) {
  const std::string job =
      "learning_rate=0.02 eval_steps=2 save_steps=3 eval_generate=2 max_new_tokens=5 ";
  run("whole", job + "max_steps=6");
  run("parts", job + "max_steps=6");
  // As if it had been stopped after its checkpoint and before the end.
  std::filesystem::remove_all(path("parts/checkpoint-6"));
  std::filesystem::remove_all(path("parts/adapter"));
  run("parts", job + "max_steps=6 resume_from_checkpoint=auto");
  EXPECT_TRUE(testing::contains(said_.text(), "resumed from"));
  EXPECT_EQ(evaluations("parts"), evaluations("whole"));
  EXPECT_EQ(base::read_text_file(path("parts/samples.jsonl")),
            base::read_text_file(path("whole/samples.jsonl")));
}

// Whatever trains, and however weights are stored. Evaluating has norms of rows made once (DoRA),
// which training cannot.
TEST_F(GeneratedAnswersRuns, EveryMethodAnswersAsItsResult) {
  const auto answers_of = [&](const std::string& name) {
    std::vector<std::string> answers;
    for (const Json& sample : lines(name + "/samples.jsonl")) answers.push_back(sample["answer"]);
    return answers;
  };
  const auto compare = [&](const std::string& name, const std::string& trained,
                           const std::string& asked_by) {
    run(name, trained + " max_steps=3 learning_rate=0.05 eval_generate=4 max_new_tokens=6");
    std::vector<std::string> expected;
    for (const auto& answer : asked(name, "other.jsonl", "max_new_tokens=6 " + asked_by).answers)
      expected.push_back(answer.text);
    EXPECT_EQ(answers_of(name), expected) << name;
  };
  compare("dora", "use_dora=true", "");
  compare("qlora", "method=qlora", "load_in_4bit=true");
  compare("full", "method=full", "model=" + path("full/model").string());
}

// Each set has figures of its own, by which the best checkpoint can be chosen.
TEST_F(GeneratedAnswersRuns, SetsAreScoredByThemselves) {
  run("sets",
      "max_steps=40 learning_rate=0.02 lora_r=8 eval_steps=10 save_steps=10 eval_generate=3 "
      "max_new_tokens=3 load_best_model_at_end=true metric_for_best_model=seen_exact",
      path("sets.yaml").string());
  const Json last = evaluations("sets").back();
  EXPECT_TRUE(last.contains("eval_seen_exact"));
  EXPECT_TRUE(last.contains("eval_other_exact"));
  EXPECT_FALSE(last.contains("eval_exact"));
  EXPECT_EQ(asked("sets", "data.jsonl", "max_new_tokens=3").exact_match.value, [&] {
    double best = 0;
    for (const Json& line : evaluations("sets"))
      best = std::max(best, line["eval_seen_exact"].get<double>());
    return best;
  }()) << "the result is the best by the greatest value";
}

TEST_F(GeneratedAnswersRuns, RecordsThatAreHeldOutAreAsked) {
  run("held", "max_steps=2 val_set_size=2 eval_generate=5 max_new_tokens=2");
  const std::vector<Json> samples = lines("held/samples.jsonl");
  ASSERT_EQ(samples.size(), 2);
  const Json measured = json("held/measured.json");
  EXPECT_EQ(measured["data"][1]["records"], 2);
  EXPECT_NE(samples[0]["prompt"], samples[1]["prompt"]);
}

TEST_F(GeneratedAnswersRuns, WhatCannotBeAskedIsRefused) {
  EXPECT_TRUE(testing::contains(failure_of("max_steps=1 val_set_size=0 eval_generate=2"),
                                "'eval_generate' asks records of the evaluation data, but there"));
  EXPECT_TRUE(testing::contains(
      failure_of("max_steps=1 eval_generate=2 eval_data=" + path("texts.jsonl").string()),
      "plain text without a question"));
  EXPECT_TRUE(testing::contains(failure_of("max_steps=1 batch=4"),
                                "'batch' is about the answers of an evaluation"));
  EXPECT_TRUE(
      testing::contains(failure_of("max_steps=1 eval_generate=2 metric_for_best_model=rougeL"),
                        "they give eval_loss, eval_perplexity, eval_exact"));
  EXPECT_TRUE(testing::contains(
      failure_of("max_steps=1 eval_generate=96 max_new_tokens=120 device_memory=2MiB eval_data=" +
                 path("many.jsonl").string()),
      "The cheapest change that fits: batch="));
  const formats::Recipe two = recipe("refused", "max_steps=1 eval_generate=2 devices=2");
  const auto backend = backends::open_backend(two);
  EXPECT_TRUE(testing::contains(testing::user_error_of([&] {
                                  plan::training_spec(two, models::find_model(two.model).config,
                                                      *backend);
                                }),
                                "'eval_generate' generates on one device, and this run has 2"));
}

}  // namespace
}  // namespace snug::train
