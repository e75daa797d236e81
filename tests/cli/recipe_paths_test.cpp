// Paths in a recipe file lead to what is in the current folder or next to the recipe; those on the
// command line, and what is written, to the current folder alone.
#include <gtest/gtest.h>

#include "binary_run.h"
#include "formats/recipe/recipe.h"
#include "tiny_model.h"

namespace snug::cli {
namespace {

namespace fs = std::filesystem;
using testing::contains;
using testing::TemporaryFolder;

constexpr const char* kRecipe =
    "model: model\ninit: random\ndata: data/train.jsonl\nmax_length: 256\nmax_steps: 1\n"
    "threads: 1\n";

// A project folder with a recipe, which other folders are no part of.
class RecipePaths : public ::testing::Test {
 protected:
  void SetUp() override {
    write_tiny_shape(folder_, "model");
    folder_.write("data/train.jsonl", kTinyData);
    write_recipe("");
  }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  void write_recipe(const std::string& more) { folder_.write("job.yaml", kRecipe + more); }

  BinaryRun train(const std::vector<std::string>& words = {}) const {
    return run_snug(joined({"train", path("job.yaml"), "output_dir=" + path("run")}, words));
  }

  TemporaryFolder folder_;
};

TEST_F(RecipePaths, LeadToWhatIsNextToTheRecipe) {
  write_recipe("eval_data: data/train.jsonl\n");
  const BinaryRun run = train();
  ASSERT_EQ(run.exit_code, 0) << run.err;
  // The run's own recipe says where that was, and reads the same from here.
  EXPECT_TRUE(contains(contents_of(folder_ / "run/recipe.yaml"), path("data/train.jsonl")));
  write_recipe("adapter: run/adapter\n");
  const BinaryRun more = train({"output_dir=" + path("more")});
  EXPECT_EQ(more.exit_code, 0) << more.err;
  write_recipe("resume_from_checkpoint: run/checkpoint-1\n");
  const BinaryRun resumed = train({"output_dir=" + path("on")});
  EXPECT_TRUE(contains(resumed.err, "resumed from " + path("run/checkpoint-1"))) << resumed.err;
}

TEST_F(RecipePaths, LeadToPatternsAndFoldersNextToTheRecipe) {
  folder_.write("more/train.jsonl", kTinyData);
  folder_.write("more/dev.jsonl", kTinyData);
  folder_.write("more/notes.md", "");
  std::string recipe = kRecipe;
  recipe.replace(recipe.find("data/train.jsonl"), 16, "[data/*.jsonl, more]");
  folder_.write("job.yaml", recipe + "eval_data: more\n");
  const BinaryRun run = train();
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(contains(run.err, path("data/*.jsonl") + ": ")) << run.err;
  EXPECT_TRUE(contains(run.err, path("more") + ", split train: no data, and left out: notes.md"));
  EXPECT_TRUE(contains(run.err, path("more") + ", split validation: ")) << run.err;
  recipe.replace(recipe.find("data/*.jsonl"), 12, "data/tran.jsonl");
  folder_.write("job.yaml", recipe);
  const BinaryRun misspelt = train({"output_dir=" + path("other")});
  EXPECT_EQ(misspelt.exit_code, 2);
  EXPECT_TRUE(contains(misspelt.err, "did you mean " + path("data/train.jsonl") + "?"))
      << misspelt.err;
}

TEST_F(RecipePaths, LeadToTheCurrentFolderFirst) {
  // Tests run in the source folder, which has such a file too.
  folder_.write("examples/wordnet/train.jsonl", "broken");
  write_recipe("eval_data: examples/wordnet/train.jsonl\n");
  EXPECT_EQ(train().exit_code, 0);
}

TEST_F(RecipePaths, AnErrorNamesBothPlaces) {
  for (const char* key : {"model", "adapter", "data", "eval_data", "chat_template", "calibration",
                          "resume_from_checkpoint"}) {
    std::string recipe = kRecipe;
    if (const size_t at = recipe.find(std::string(key) + ": "); at != std::string::npos)
      recipe.erase(at, recipe.find('\n', at) + 1 - at);
    folder_.write("job.yaml", recipe + key + ": gone.x\n");
    const BinaryRun run = train();
    EXPECT_EQ(run.exit_code, 2) << key;
    EXPECT_TRUE(contains(run.last_line(), "there is no gone.x and no " + path("gone.x")))
        << key << ": " << run.err;
    EXPECT_TRUE(contains(run.last_line(), "job.yaml:")) << run.err;
    EXPECT_FALSE(fs::exists(folder_ / "run"));
  }
}

// What is at neither place may have been meant as a name of the hub.
TEST_F(RecipePaths, AnErrorSaysHowAModelIsFetched) {
  folder_.write("job.yaml", "model: org/name\ndata: data/train.jsonl\n");
  const BinaryRun run = train();
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_TRUE(contains(run.err, "there is no org/name")) << run.err;
  EXPECT_TRUE(contains(run.err, "'hf download org/name'")) << run.err;
}

TEST_F(RecipePaths, OnTheCommandLineLeadToTheCurrentFolder) {
  const BinaryRun run = train({"data=data/train.jsonl"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_TRUE(contains(run.last_line(), "\"data/train.jsonl\" does not exist")) << run.err;
}

TEST_F(RecipePaths, AreNoConcernOfVerbsWithoutTheKey) {
  write_recipe("eval_data: gone.jsonl\n");
  const BinaryRun run = run_snug({"generate", path("job.yaml"), "ids=1", "max_new_tokens=1"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  const BinaryRun plan = run_snug({"plan", path("job.yaml")});
  EXPECT_EQ(plan.exit_code, 0) << plan.err;
  EXPECT_TRUE(contains(plan.err, "planned without the tokens of data gone.jsonl")) << plan.err;
}

// A folder of the same name does not take the place of what is built in.
TEST_F(RecipePaths, AreNotMadeOfBuiltInNames) {
  fs::create_directories(folder_ / "smollm2-135m");
  folder_.write("shape.yaml", "model: smollm2-135m\nmax_length: 64\nchat_template: chatml\n");
  folder_.write("chatml", "no template");
  const BinaryRun run = run_snug({"plan", path("shape.yaml"), "--json"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(contains(run.out, "\"model\": \"smollm2-135m\"")) << run.out;
}

}  // namespace
}  // namespace snug::cli
