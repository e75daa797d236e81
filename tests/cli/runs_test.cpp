// `snug runs` on folders as runs leave them: finished, stopped, failed, killed, going on, broken,
// and of others.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "../base/temporary_folder.h"
#include "cli/request.h"
#include "cli/run_comparison.h"
#include "cli/run_summary.h"
#include "cli/text_chart.h"
#include "train/folder_lock.h"

namespace snug::cli {
namespace {

namespace fs = std::filesystem;
using testing::contains;

class Runs : public ::testing::Test {
 protected:
  // A folder as a run of three steps leaves it, one of its keys as given.
  fs::path make(const std::string& name, const std::string& rate, const std::string& last_words) {
    fs::create_directories(folder_ / name);
    folder_.write(name + "/.snug_run.json", "{}");
    folder_.write(name + "/recipe.yaml",
                  "# Model and method\nmodel: m\nmethod: lora\nmax_steps: 3\n"
                  "learning_rate: " +
                      rate + "\noutput_dir: " + name + "\n");
    folder_.write(name + "/plan.json", R"({"resident": {"peak_bytes": 1048576}})");
    folder_.write(name + "/run.log",
                  "2026-11-29T12:00:00Z first\n2026-11-29T12:01:00Z " + last_words + "\n");
    return folder_
        .write(name + "/metrics.jsonl",
               "{\"step\":1,\"loss\":4,\"tokens_per_second\":90}\n"
               "{\"step\":2,\"loss\":2,\"tokens_per_second\":90}\n"
               "{\"step\":2,\"eval_loss\":3}\n"
               "{\"step\":3,\"loss\":2.5,\"tokens_per_second\":90}\n")
        .parent_path();
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  testing::TemporaryFolder folder_;
};

TEST_F(Runs, AreListedWithTheirFigures) {
  make("a", "0.1", "stopped after step 3; checkpoint saved");
  const FoundRuns found = find_runs({folder_.path().string()});
  ASSERT_EQ(found.runs.size(), 1U);
  EXPECT_FALSE(found.are_all_named);
  const std::vector<std::string> row = run_table(found.runs)[1];
  EXPECT_EQ(row, (std::vector<std::string>{path("a"), "stopped", "m", "lora", "3/3", "2.5 (2)",
                                           "3 (3)", "90", "1.0 MiB", "-", row.back()}));
  EXPECT_EQ(row.back().size(), std::string("2026-11-29 12:00").size());
}

TEST_F(Runs, SayHowTheyStand) {
  const auto state = [](const fs::path& run) { return summary_of_run(run).state; };
  EXPECT_EQ(state(make("stopped", "1", "stopped after step 2; checkpoint saved")),
            RunState::stopped);
  EXPECT_EQ(state(make("killed", "1", "read 0.01 GB of weights")), RunState::killed);
  const fs::path failed = make("failed", "1", "snug: error: step 7: the loss is nan");
  EXPECT_EQ(state(failed), RunState::failed);
  EXPECT_EQ(summary_of_run(failed).last_words, "step 7: the loss is nan");
  const fs::path finished = make("finished", "1", "loading 1 ms");
  folder_.write("finished/measured.json",
                R"({"resident": {"peak_bytes": 2097152}, "tokens_per_second": 95.5})");
  const RunSummary run = summary_of_run(finished);
  EXPECT_EQ(run.state, RunState::finished);
  EXPECT_EQ(run.measured_bytes, 2097152);
  EXPECT_EQ(run.tokens_per_second, 95.5);
  {
    const auto lock = train::FolderLock::take(finished);
    EXPECT_EQ(state(finished), RunState::running) << "it goes on after it had finished";
  }
  EXPECT_EQ(state(finished), RunState::finished);
}

TEST_F(Runs, ThatAreBrokenOrOfOthersArePassedOverByName) {
  make("deep/er/good", "1", "x");
  make("no_recipe", "1", "x");
  fs::remove(folder_ / "no_recipe/recipe.yaml");
  make("other_recipe", "1", "x");
  folder_.write("other_recipe/recipe.yaml", "- a\n- b\n");
  make("torn", "1", "x");
  folder_.write("torn/metrics.jsonl", "{\"step\":1,\"loss\":4}\nnonsense\n{\"step\":2,\"lo");
  make("young", "1", "x");
  fs::remove(folder_ / "young/metrics.jsonl");
  fs::create_directories(folder_ / "trainer/checkpoint-5");
  folder_.write("trainer/trainer_state.json", "{}");
  const FoundRuns found = find_runs({folder_.path().string()});
  ASSERT_EQ(found.runs.size(), 3U);
  EXPECT_EQ(found.runs[0].name, path("deep/er/good"));
  EXPECT_EQ(found.runs[1].steps, 1) << "of what can be read";
  EXPECT_EQ(found.runs[1].curves.unreadable, 2);
  EXPECT_EQ(found.runs[2].steps, 0);
  ASSERT_EQ(found.broken.size(), 2U);
  EXPECT_TRUE(contains(found.broken[0].second, "recipe.yaml"));
  EXPECT_TRUE(contains(found.broken[1].second, "names no method"));
  EXPECT_TRUE(contains(found.others.back(), "trainer"));
  EXPECT_TRUE(contains(testing::user_error_of([] { find_runs({"no/such"}); }),
                       "there is no folder no/such"));
}

TEST_F(Runs, AreComparedByRecipesAndCurves) {
  const fs::path a = make("a", "0.1", "x");
  const fs::path b = make("b", "0.2", "x");
  folder_.write("b/recipe.yaml",
                "model: m\nmethod: lora\nmax_steps: 3\nlearning_rate: 0.2\n"
                "new_key: 1\noutput_dir: b\n");
  const FoundRuns found = find_runs({a.string(), b.string()});
  EXPECT_TRUE(found.are_all_named);
  EXPECT_EQ(
      recipe_differences(found.runs),
      (std::vector<std::vector<std::string>>{
          {"key", path("a"), path("b")}, {"learning_rate", "0.1", "0.2"}, {"new_key", "-", "1"}}));
  const std::string text = comparison_text(found.runs);
  for (const std::string& part :
       {std::string("loss, smoothed"), std::string("loss of the evaluation data"), "a " + path("a"),
        "b " + path("b")})
    EXPECT_TRUE(contains(text, part)) << text;
  const std::string page = comparison_page(found.runs);
  for (const char* part :
       {"<h1>2 runs</h1>", ">Loss<", "Loss of the evaluation data", "What their recipes differ in"})
    EXPECT_TRUE(contains(page, part)) << part;
  EXPECT_TRUE(contains(comparison_text(std::vector(2, found.runs[0])), "do not differ"));
}

// The best reward is the greatest; runs without rewards have no column of them.
TEST_F(Runs, OfRewardsShowThem) {
  const fs::path a = make("a", "0.1", "x");
  const auto columns = [](const std::vector<RunSummary>& runs) { return run_table(runs).front(); };
  EXPECT_EQ(std::ranges::count(columns(find_runs({a.string()}).runs), "reward (best)"), 0);
  folder_.write("a/metrics.jsonl",
                "{\"step\":1,\"loss\":0.5,\"reward\":0.25}\n"
                "{\"step\":2,\"loss\":0.4,\"reward\":0.75}\n"
                "{\"step\":3,\"loss\":0.6,\"reward\":0.5}\n");
  const std::vector<RunSummary> runs = find_runs({a.string()}).runs;
  const std::vector<std::string> names = columns(runs);
  const auto reward =
      static_cast<size_t>(std::ranges::find(names, "reward (best)") - names.begin());
  ASSERT_LT(reward, names.size());
  EXPECT_EQ(run_table(runs)[1][reward], "0.5 (0.75)");
  EXPECT_EQ(json_of(runs[0])["best_reward"], 0.75);
  EXPECT_EQ(json_of(runs[0])["best_loss"], 0.4);
  EXPECT_TRUE(contains(comparison_text(runs), "reward, smoothed"));
}

TEST(TextChart, DrawsLinesOverRoundNumbers) {
  EXPECT_EQ(text_chart({{'a', {1, 2, 3}, {3, 2, 1}}, {'b', {1, 3}, {1, 1}}}, 9, 3),
            "         3 |a\n"
            "         2 |    a\n"
            "         1 |b       *\n"
            "           +---------\n"
            "            1   2   3\n");
  EXPECT_EQ(text_chart({{'a', {1}, {NAN}}}), "");
  EXPECT_TRUE(contains(text_chart({{'a', {7}, {2}}}), "a"));
}

TEST(RunsRequest, TakesFolders) {
  const testing::TemporaryFolder folder;
  fs::create_directory(folder / "lr=1");
  const std::string named = (folder / "lr=1").string();
  const Request request = make_request({named, "other", "output=x.html"}, false, true);
  EXPECT_EQ(request.folders, (std::vector<std::string>{named, "other"}));
  EXPECT_EQ(request.overrides, std::vector<std::string>{"output=x.html"});
}

}  // namespace
}  // namespace snug::cli
