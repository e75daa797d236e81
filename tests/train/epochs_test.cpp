// A run of whole epochs ends with its last row, and what goes on from it begins with the next.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "../cli/binary_run.h"

namespace snug::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

class Epochs : public ::testing::Test {
 protected:
  void SetUp() override {
    std::ofstream data(folder_ / "five.jsonl");
    for (const char* text : {"The dog barks.", "A cat sleeps most of the day.", "Rivers flow.",
                             "Stones are hard.", "Birds sing when the light comes back."})
      data << Json{{"text", text}}.dump() << "\n";
  }

  // The lines of metrics.jsonl after the run, which counts steps of `rows`.
  std::vector<Json> train(const std::string& name, int rows, const std::string& length) {
    const BinaryRun run =
        run_snug({"train", "model=examples/wordnet", "method=full",
                  "data=" + (folder_ / "five.jsonl").string(), "shuffle=false", "packing=false",
                  "max_length=64", "compute_dtype=fp32", "save_steps=2",
                  "lr_scheduler_type=constant", "resume_from_checkpoint=auto", length,
                  "per_device_train_batch_size=" + std::to_string(rows),
                  "output_dir=" + (folder_ / name).string()});
    EXPECT_EQ(run.exit_code, 0) << run.err;
    std::vector<Json> lines;
    std::stringstream stream(contents_of(folder_ / name / "metrics.jsonl"));
    for (std::string line; std::getline(stream, line);) lines.push_back(Json::parse(line));
    return lines;
  }

  testing::TemporaryFolder folder_;
};

TEST_F(Epochs, TheLastStepTakesWhatIsLeft) {
  const std::vector<Json> whole = train("whole", 2, "num_train_epochs=1");
  ASSERT_EQ(whole.size(), 3U);
  EXPECT_EQ(whole[2]["epoch"], 1.0);
  // The same step by a run that takes one row from there on.
  ASSERT_EQ(train("parts", 2, "max_steps=2").size(), 2U);
  const std::vector<Json> parts = train("parts", 1, "max_steps=3");
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_EQ(whole[2]["tokens"], parts[2]["tokens"]);
  EXPECT_EQ(whole[2]["trained_tokens"], parts[2]["trained_tokens"]);
  EXPECT_NEAR(whole[2]["loss"], parts[2]["loss"], 1e-5);
  EXPECT_NEAR(whole[2]["grad_norm"], parts[2]["grad_norm"], 1e-4);
}

TEST_F(Epochs, MoreOfThemGoOnWithTheNextRow) {
  ASSERT_EQ(train("run", 2, "num_train_epochs=1").size(), 3U);
  const std::vector<Json> two = train("run", 2, "num_train_epochs=2");
  ASSERT_EQ(two.size(), 6U);
  for (const size_t step : {0, 1, 2}) EXPECT_EQ(two[step]["tokens"], two[step + 3]["tokens"]);
  EXPECT_EQ(two[5]["epoch"], 2.0);
}

}  // namespace
}  // namespace snug::cli
