// Whole runs that look after themselves: the best checkpoint becomes the result and outlives the
// limit, a run that goes on knows its best, patience ends it, and guards stop it.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "../base/captured_stream.h"
#include "../cli/tiny_model.h"
#include "base/file.h"
#include "formats/recipe/recipe.h"
#include "runtime/saving/checkpoint.h"
#include "train/train.h"

namespace snug::train {
namespace {

using Json = nlohmann::json;
using Steps = std::set<int64_t>;

class WatchedRuns : public ::testing::Test {
 protected:
  WatchedRuns() {
    cli::write_tiny_shape(folder_, "shape");
    folder_.write("data.jsonl",
                  "{\"prompt\": \"Say a.\", \"completion\": \"a\"}\n"
                  "{\"prompt\": \"Say b.\", \"completion\": \"b\"}\n"
                  "{\"prompt\": \"Say c.\", \"completion\": \"c\"}\n");
    folder_.write("other.jsonl", "{\"prompt\": \"Name it.\", \"completion\": \"a river\"}\n");
  }

  std::filesystem::path path(const std::string& name) const { return folder_ / name; }

  // An epoch has three steps.
  int run(const std::string& name, const std::string& more) const {
    const std::vector<std::string> defaults{"model=" + path("shape").string(),
                                            "data=" + path("data.jsonl").string(),
                                            "eval_data=" + path("other.jsonl").string(),
                                            "output_dir=" + path(name).string(),
                                            "init=random",
                                            "method=lora",
                                            "max_length=64",
                                            "packing=false",
                                            "compute_dtype=fp32",
                                            "threads=1",
                                            "lr_scheduler_type=constant"};
    return train(formats::load_recipe("", cli::with_defaults(defaults, more)));
  }
  // What it ends with, and what it says.
  base::UserError failure_of(const std::string& name, const std::string& more) const {
    try {
      run(name, more);
    } catch (const base::UserError& error) {
      return error;
    }
    ADD_FAILURE() << name << " did not stop";
    return base::UserError("");
  }

  std::vector<Json> evaluations(const std::string& name) const {
    std::vector<Json> lines;
    std::istringstream text(base::read_text_file(path(name) / "metrics.jsonl"));
    for (std::string line; std::getline(text, line);)
      if (const Json record = Json::parse(line); record.contains("eval_loss"))
        lines.push_back(record);
    return lines;
  }
  Steps evaluated(const std::string& name) const {
    Steps steps;
    for (const Json& line : evaluations(name)) steps.insert(line["step"].get<int64_t>());
    return steps;
  }
  Steps checkpoints(const std::string& name) const {
    Steps steps;
    for (const auto& entry : std::filesystem::directory_iterator(path(name)))
      if (const std::string each = entry.path().filename().string(); each.starts_with("checkpoint"))
        steps.insert(std::stoll(each.substr(each.find('-') + 1)));
    return steps;
  }
  std::string adapter(const std::string& place) const {
    return base::read_text_file(path(place) / "adapter_model.safetensors");
  }
  int64_t best_step(const std::string& name) const {
    const std::vector<Json> lines = evaluations(name);
    return std::ranges::min_element(
               lines, {}, [](const Json& line) { return line["eval_loss"].get<double>(); })
        ->at("step");
  }

  testing::TemporaryFolder folder_;
  testing::CapturedStream said_{stderr};
};

constexpr const char* kEach = "eval_steps=1 save_steps=1 learning_rate=0.05 guards=none ";

TEST_F(WatchedRuns, TheResultIsTheModelOfTheBestCheckpoint) {
  const std::string best = std::string(kEach) + "load_best_model_at_end=true save_total_limit=1 ";
  ASSERT_EQ(run("whole", best + "max_steps=8"), 0);
  const int64_t step = best_step("whole");
  ASSERT_LT(step, 8) << "the evaluation gets worse in the end";
  EXPECT_EQ(checkpoints("whole"), (Steps{step, 8})) << "the best and the last stay";
  EXPECT_EQ(adapter("whole/adapter"), adapter("whole/checkpoint-" + std::to_string(step)));
  EXPECT_NE(adapter("whole/adapter"), adapter("whole/checkpoint-8"));
  // Without the key it is the last.
  ASSERT_EQ(run("last", std::string(kEach) + "max_steps=8"), 0);
  EXPECT_EQ(adapter("last/adapter"), adapter("whole/checkpoint-8"));
  // A run that goes on after its best knows it.
  ASSERT_EQ(run("parts", best + "max_steps=6"), 0);
  ASSERT_EQ(run("parts", best + "max_steps=8 resume_from_checkpoint=auto"), 0);
  EXPECT_EQ(checkpoints("parts"), (Steps{step, 8}));
  EXPECT_EQ(adapter("parts/adapter"), adapter("whole/adapter"));
  EXPECT_EQ(runtime::read_checkpoint_state(path("parts/checkpoint-8")).history,
            runtime::read_checkpoint_state(path("whole/checkpoint-8")).history);
}

// Without the optimizer's state: the same result, nothing to resume from, and what to do instead.
TEST_F(WatchedRuns, CheckpointsOfTheModelAloneGiveTheSameResult) {
  const std::string best = std::string(kEach) + "load_best_model_at_end=true save_total_limit=1 ";
  const std::string alone = best + "save_only_model=true ";
  for (const std::string method : {"lora", "full"}) {
    const auto with = [&](const char* name) { return std::string(name) + "_" + method; };
    const std::string words = "method=" + method + " ";
    ASSERT_EQ(run(with("whole"), words + best + "max_steps=8"), 0);
    ASSERT_EQ(run(with("alone"), words + alone + "max_steps=8"), 0);
    const int64_t step = best_step(with("alone"));
    ASSERT_LT(step, 8);
    EXPECT_EQ(checkpoints(with("alone")), (Steps{step, 8})) << "the best and the last stay";
    const std::string file =
        method == "full" ? "model/model.safetensors" : "adapter/adapter_model.safetensors";
    EXPECT_EQ(base::read_text_file(path(with("alone")) / file),
              base::read_text_file(path(with("whole")) / file));
    EXPECT_FALSE(
        std::filesystem::exists(path(with("alone")) / "checkpoint-8" / "optimizer.safetensors"));
    for (const char* from : {"auto", "PATH"}) {
      const std::string place =
          from == std::string("auto") ? from : (path(with("alone")) / "checkpoint-8").string();
      const base::UserError error =
          failure_of(with("alone"), words + alone + "max_steps=9 resume_from_checkpoint=" + place);
      EXPECT_TRUE(testing::contains(error.what(), "holds the model alone (save_only_model)"));
      EXPECT_TRUE(
          testing::contains(error.what(), (method == "full" ? "model=" : "adapter=") +
                                              (path(with("alone")) / "checkpoint-8").string()))
          << error.what();
    }
  }
  // Its weights are a start for another run, as the error says.
  EXPECT_EQ(run("next", "max_steps=1 guards=none adapter=" +
                            (path("alone_lora") / "checkpoint-8").string()),
            0);
}

// Each checkpoint is evaluated where the best is asked for, whatever the interval.
TEST_F(WatchedRuns, StrategiesSayWhenIsSavedAndEvaluated) {
  const std::string rate = "learning_rate=0.01 guards=none max_steps=7 ";
  ASSERT_EQ(run("no", rate + "save_strategy=no eval_strategy=no"), 0);
  EXPECT_EQ(checkpoints("no"), Steps{});
  EXPECT_EQ(evaluated("no"), Steps{});
  ASSERT_EQ(run("epoch", rate + "save_strategy=epoch eval_strategy=epoch eval_on_start=true"), 0);
  EXPECT_EQ(checkpoints("epoch"), (Steps{3, 6, 7}));
  EXPECT_EQ(evaluated("epoch"), (Steps{0, 3, 6, 7}));
  ASSERT_EQ(run("both", rate + "save_steps=3 eval_steps=2 load_best_model_at_end=true"), 0);
  EXPECT_EQ(checkpoints("both"), (Steps{3, 6, 7}));
  EXPECT_EQ(evaluated("both"), (Steps{2, 3, 4, 6, 7}));
  EXPECT_EQ(adapter("no/adapter"), adapter("epoch/adapter")) << "evaluating changes nothing";
}

TEST_F(WatchedRuns, OnlyTheBestIsSavedWhereThatIsAskedFor) {
  ASSERT_EQ(run("best",
                "learning_rate=0.05 guards=none max_steps=8 save_strategy=best "
                "eval_steps=1 save_total_limit=1"),
            0);
  EXPECT_EQ(checkpoints("best"), Steps{best_step("best")});
}

// The loss falls, so no evaluation after the first has a greater one.
TEST_F(WatchedRuns, PatienceEndsARun) {
  const std::string words =
      "learning_rate=0.01 max_steps=9 eval_steps=1 save_steps=1 greater_is_better=true "
      "early_stopping_patience=2 load_best_model_at_end=true ";
  ASSERT_EQ(run("early", words), 0);
  EXPECT_EQ(evaluated("early"), (Steps{1, 2, 3}));
  EXPECT_EQ(adapter("early/adapter"), adapter("early/checkpoint-1"));
  EXPECT_NE(said_.text().find("ended after step 3 of 9: 2 evaluations in a row"),
            std::string::npos);
  // What had ended does not go on.
  ASSERT_EQ(run("early", words + "resume_from_checkpoint=auto"), 0);
  EXPECT_EQ(checkpoints("early"), (Steps{1, 2, 3}));
  EXPECT_EQ(adapter("early/adapter"), adapter("early/checkpoint-1"));
}

TEST_F(WatchedRuns, AMetricThatNothingGivesIsRefusedBeforeTheRun) {
  const base::UserError error = failure_of("none", "metric_for_best_model=rouge");
  EXPECT_TRUE(testing::contains(error.what(), "they give eval_loss, eval_perplexity"));
  EXPECT_FALSE(std::filesystem::exists(path("none")));
}

TEST_F(WatchedRuns, AnEvaluationWorseThanAtTheStartStopsARun) {
  folder_.write("far.jsonl", "{\"prompt\": \"~?\", \"completion\": \"~~~~~~~~~~~~~~~~\"}\n");
  const std::string words =
      "learning_rate=0.05 max_steps=6 eval_steps=1 save_steps=1 eval_on_start=true eval_data=" +
      path("far.jsonl").string() + " ";
  const base::UserError error = failure_of("worse", words);
  EXPECT_EQ(error.exit_code(), 4);
  EXPECT_TRUE(testing::contains(error.what(), "before the first step"));
  EXPECT_FALSE(std::filesystem::exists(path("worse/adapter")));
  EXPECT_EQ(run("off", words + "guards=no_worse_evaluation"), 0);
}

TEST_F(WatchedRuns, AnAdapterThatDoesNotMoveStopsARun) {
  const std::string words = "learning_rate=1e-30 adam_epsilon=1e30 max_steps=5 ";
  const base::UserError error = failure_of("idle", words + "save_steps=1");
  EXPECT_EQ(error.exit_code(), 4);
  EXPECT_TRUE(testing::contains(error.what(), "step 3: every B of the adapter is still exactly 0"));
  EXPECT_TRUE(testing::contains(error.what(), "The last sound checkpoint is that of step 2"));
  EXPECT_EQ(run("off", words + "guards=no_idle_adapter"), 0);
  // One that moves goes on, also with a warm-up as long as the run.
  EXPECT_EQ(run("moves", "learning_rate=1e-4 max_steps=3"), 0);
  EXPECT_EQ(run("warm", "learning_rate=1e-4 max_steps=2 lr_scheduler_type=linear warmup_steps=2"),
            0);
}

}  // namespace
}  // namespace snug::train
