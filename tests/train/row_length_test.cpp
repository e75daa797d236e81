// max_length=auto as a user meets it: what a run says of it and keeps, and what it refuses.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tiny_job.h"

namespace snug::train {
namespace {

constexpr int kLongest = 40;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string record(int tokens) {
  std::string ids = "5";
  for (int i = 1; i < tokens; ++i) ids += fmt::format(",{}", 5 + i % 90);
  return fmt::format("{{\"input_ids\": [{}]}}\n", ids);
}

// Of documents of which one lies in a row as long as the longest.
class RowLength : public ::testing::Test {
 protected:
  RowLength() {
    std::string lines = record(kLongest);
    for (int i = 0; i < 30; ++i) lines += record(22 + i % 4);
    job_.folder().write("ids.jsonl", lines);
  }

  std::string data(const std::string& name = "ids.jsonl") const {
    return " data=" + job_.path(name).string() + " ";
  }
  cli::BinaryRun run(const std::string& output, const std::string& more) const {
    return job_.run(output,
                    data() + "lr_scheduler_type=constant warmup_ratio=0 save_steps=2 " + more);
  }
  int64_t number_in_recipe(const std::string& output, const std::string& key) const {
    const std::string yaml = cli::contents_of(job_.path(output) / "recipe.yaml");
    const size_t at = yaml.find("\n" + key + ": ");
    return at == std::string::npos ? -1 : std::stoll(yaml.substr(at + key.size() + 3));
  }

  TinyJob job_;
};

TEST_F(RowLength, IsWrittenAsANumberThatMakesTheSameRun) {
  const cli::BinaryRun first =
      run("first", "max_length=auto gradient_accumulation_steps=4 max_steps=4 warmup_ratio=0.5");
  ASSERT_EQ(first.exit_code, 0) << first.err;
  const int64_t length = number_in_recipe("first", "max_length");
  EXPECT_TRUE(contains(first.err, fmt::format("max_length=auto: {} tokens, ", length)))
      << first.err;
  EXPECT_EQ(length * number_in_recipe("first", "gradient_accumulation_steps"), 4 * kLongest);
  const auto plan = nlohmann::json::parse(cli::contents_of(job_.path("first") / "plan.json"));
  EXPECT_EQ(plan["tokens_per_step"], 4 * kLongest);
  const cli::BinaryRun again =
      cli::run_snug({"train", (job_.path("first") / "recipe.yaml").string(),
                     "output_dir=" + job_.path("again").string()});
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_FALSE(contains(again.err, "max_length=auto")) << again.err;
  EXPECT_EQ(job_.adapter("again"), job_.adapter("first"));
}

// A run keeps its length, whatever would be chosen now.
TEST_F(RowLength, IsThatOfTheRunThatGoesOn) {
  for (const int times : {1, 2, 4}) {
    SCOPED_TRACE(times);
    const std::string name = fmt::format("run-{}", times);
    ASSERT_EQ(run(name, fmt::format("max_length={} gradient_accumulation_steps={} max_steps=4",
                                    times * kLongest, 4 / times))
                  .exit_code,
              0);
    const std::string checkpoint = (job_.path(name) / "checkpoint-2").string();
    const cli::BinaryRun resumed =
        run(name + "-resumed",
            "max_length=auto gradient_accumulation_steps=4 max_steps=4 resume_from_checkpoint=" +
                checkpoint);
    ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
    EXPECT_TRUE(contains(resumed.err, ", as the run began")) << resumed.err;
    EXPECT_EQ(job_.adapter(name + "-resumed"), job_.adapter(name));
  }
  ASSERT_EQ(run("odd", "max_length=50 max_steps=2").exit_code, 0);
  const cli::BinaryRun other =
      run("odd", "max_length=auto max_steps=4 resume_from_checkpoint=auto");
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_TRUE(contains(other.err, "max_length was 50 and is 40")) << other.err;
}

TEST_F(RowLength, HoldsTheLongestOfBothFilesUpToTheModelsPositions) {
  job_.folder().write("longer.jsonl", record(90));
  ASSERT_EQ(
      run("both", "max_length=auto max_steps=1 eval_data=" + job_.path("longer.jsonl").string())
          .exit_code,
      0);
  EXPECT_EQ(number_in_recipe("both", "max_length"), 90);
  job_.folder().write("longest.jsonl", record(300) + record(20));
  const cli::BinaryRun cut = run("cut", "max_length=auto max_steps=1" + data("longest.jsonl"));
  ASSERT_EQ(cut.exit_code, 0) << cut.err;
  EXPECT_EQ(number_in_recipe("cut", "max_length"), 256);
  EXPECT_TRUE(contains(cut.err,
                       "1 longer document is cut: 256 tokens are the most that the model has "
                       "positions for"))
      << cut.err;
}

TEST_F(RowLength, NeedsData) {
  const std::string shape = "model=" + job_.path("shape").string();
  for (const char* words : {"plan", "plan data=not/there.jsonl", "explain", "bench step",
                            "bench products", "plan per_device_train_batch_size=auto"}) {
    const cli::BinaryRun refused =
        cli::run_snug(cli::joined(cli::words_of(words), {shape, "init=random", "max_length=auto"}));
    EXPECT_EQ(refused.exit_code, 2) << words;
    EXPECT_TRUE(contains(refused.err, "'max_length' is auto, which the lengths of the data's"))
        << words << refused.err;
  }
  const cli::BinaryRun search = cli::run_snug({"search", shape, "max_length=auto"});
  EXPECT_EQ(search.exit_code, 2);
  EXPECT_TRUE(contains(search.err, "'max_length' is auto")) << search.err;
}

TEST_F(RowLength, IsRefusedWhereDocumentsWouldBeCut) {
  const auto planned = [&](const std::string& words) {
    std::vector<std::string> all = job_.words("planned", data() + words);
    all.front() = "plan";
    return cli::run_snug(all);
  };
  const auto bytes_at = [&](int tokens) {
    const cli::BinaryRun plan =
        planned(fmt::format("--json recompute=layer max_length={}", tokens));
    return nlohmann::json::parse(plan.out)["device"]["peak_bytes"].get<int64_t>();
  };
  const std::string budget = fmt::format("device_memory={}B ", bytes_at(30));
  ASSERT_LT(bytes_at(30), bytes_at(kLongest));
  const std::string words = budget + "max_length=auto recompute=layer";
  for (const cli::BinaryRun& refused : {planned(words), run("refused", words)}) {
    EXPECT_EQ(refused.exit_code, 3);
    EXPECT_TRUE(contains(refused.err,
                         "a row of 40 tokens, as many as the longest document has, "
                         "does not fit; the longest that fits is max_length="))
        << refused.err;
    EXPECT_TRUE(contains(refused.err, "which cuts 1 of the 31 documents")) << refused.err;
  }
  EXPECT_FALSE(fs::exists(job_.path("refused")));
}

TEST_F(RowLength, IsTheLongestDocumentInASearch) {
  std::vector<std::string> words = job_.words("searched", data() + "--json max_length=auto");
  words.front() = "search";
  const cli::BinaryRun search = cli::run_snug(words);
  ASSERT_EQ(search.exit_code, 0) << search.err;
  const auto found = nlohmann::json::parse(search.out);
  EXPECT_TRUE(contains(found["plans"][0]["recipe"].get<std::string>(), "max_length: 40\n"))
      << search.out;
}

}  // namespace
}  // namespace snug::train
