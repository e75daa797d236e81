// Several sources of records as a user meets them: shares of an epoch, records that are held out,
// evaluation sets with names, and going on where a run stopped.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tiny_job.h"

namespace snug::train {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Records of tokens, all different.
std::string records(int count, int begin) {
  std::string lines;
  for (int i = 0; i < count; ++i)
    lines += fmt::format("{{\"input_ids\": [{}, {}, {}, 7]}}\n", 5 + begin, 5 + i % 90, 5 + i / 90);
  return lines;
}

class MixedData : public ::testing::Test {
 protected:
  MixedData() {
    job_.folder().write("many.jsonl", records(40, 1));
    job_.folder().write("few.jsonl", records(3, 2));
    job_.folder().write("easy.jsonl", records(5, 3));
    job_.folder().write("hard.jsonl", records(7, 4));
  }
  std::string path(const std::string& name) const { return job_.path(name).string(); }
  cli::BinaryRun run(const std::string& output, const std::vector<std::string>& more) const {
    return cli::run_snug(cli::joined(job_.words(output, "lr_scheduler_type=constant"), more));
  }
  std::string data(const std::string& of_many, const std::string& of_few) const {
    return fmt::format("data=[{{path: {}, {}}}, {{path: {}, {}}}]", path("many.jsonl"), of_many,
                       path("few.jsonl"), of_few);
  }
  // The values of a key in the lines of metrics that have it.
  std::vector<double> values(const std::string& output, const std::string& key) const {
    std::vector<double> found;
    std::istringstream lines(cli::contents_of(job_.path(output) / "metrics.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      const auto json = nlohmann::json::parse(line);
      if (json.contains(key)) found.push_back(json[key]);
    }
    return found;
  }

  TinyJob job_;
};

TEST_F(MixedData, IsTakenByItsWeightsAndFillsItsRows) {
  const cli::BinaryRun equal = run("equal", {data("weight: 1", "weight: 1"), "num_train_epochs=1"});
  ASSERT_EQ(equal.exit_code, 0) << equal.err;
  EXPECT_TRUE(contains(equal.err, "an epoch has 43 examples: 22 of ")) << equal.err;
  EXPECT_TRUE(contains(equal.err, ", 21 of ")) << equal.err;
  // 301 documents, of which a row of 256 tokens holds 16, and not the three that there are.
  const cli::BinaryRun often =
      run("often", {data("limit: 1", "repeats: 100"), "num_train_epochs=1"});
  ASSERT_EQ(often.exit_code, 0) << often.err;
  EXPECT_EQ(values("often", "loss").size(), 19U) << often.err;
  const cli::BinaryRun one_weight = run("bad", {data("weight: 1", "limit: 1"), "max_steps=1"});
  EXPECT_EQ(one_weight.exit_code, 2);
  EXPECT_TRUE(contains(one_weight.err, "few.jsonl")) << one_weight.err;
}

TEST_F(MixedData, GoesOnWithTheSameBits) {
  const std::vector<std::string> job{
      data("weight: 3", "weight: 1"),
      fmt::format("eval_data={{easy: {}, hard: {}}}", path("easy.jsonl"), path("hard.jsonl")),
      "val_set_size=0.2",
      "packing=false",
      "eval_steps=3",
      "save_steps=3"};
  const cli::BinaryRun whole = run("whole", cli::joined(job, {"max_steps=60"}));
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  for (const char* name : {"eval_loss", "eval_easy_loss", "eval_hard_loss", "eval_held_out_loss"})
    EXPECT_EQ(values("whole", name).size(), 20U) << name << "\n" << whole.err;
  ASSERT_EQ(run("parts", cli::joined(job, {"max_steps=27"})).exit_code, 0);
  const cli::BinaryRun rest =
      run("parts", cli::joined(job, {"max_steps=60", "resume_from_checkpoint=auto"}));
  ASSERT_EQ(rest.exit_code, 0) << rest.err;
  EXPECT_EQ(job_.adapter("parts"), job_.adapter("whole"));
  EXPECT_EQ(values("parts", "eval_hard_loss"), values("whole", "eval_hard_loss"));
  // Another share makes another run.
  std::vector<std::string> other =
      cli::joined(job, {"max_steps=70", "resume_from_checkpoint=auto"});
  other[0] = data("weight: 1", "weight: 1");
  const cli::BinaryRun refused = run("parts", other);
  EXPECT_EQ(refused.exit_code, 2) << refused.err;
}

TEST_F(MixedData, IsTheSameForSeveralRanks) {
  const std::vector<std::string> job{data("weight: 3", "weight: 1"), "packing=false",
                                     "max_steps=10", "compute_dtype=fp32"};
  ASSERT_EQ(run("one", cli::joined(job, {"gradient_accumulation_steps=2"})).exit_code, 0);
  const cli::BinaryRun two = run("two", cli::joined(job, {"devices=2"}));
  if (contains(two.err, "built without MPI")) GTEST_SKIP();
  ASSERT_EQ(two.exit_code, 0) << two.err;
  const std::vector<double> one = values("one", "loss");
  const std::vector<double> both = values("two", "loss");
  ASSERT_EQ(one.size(), both.size());
  for (size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(one[i], both[i], 1e-4);
}

}  // namespace
}  // namespace snug::train
