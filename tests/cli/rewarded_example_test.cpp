// The example that learns from rewards (docs/rewards.md): from an adapter that has seen how to
// answer, answers that are exactly right become likelier, also to questions that were never asked.
#include <gtest/gtest.h>

#include <regex>
#include <string>
#include <vector>

#include "binary_run.h"

namespace snug::cli {
namespace {

constexpr double kGain = 30;  // points of 100

class RewardedExample : public ::testing::Test {
 protected:
  RewardedExample() {
    expect_run(
        {"train", "examples/wordnet/lora.yaml", "max_steps=24", "output_dir=" + path("short")});
  }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  std::string expect_run(const std::vector<std::string>& words) const {
    const BinaryRun run = run_snug(words);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    return run.output();
  }

  void learn(const std::string& name, const std::vector<std::string>& more = {}) const {
    expect_run(joined({"train", "examples/wordnet/grpo.yaml", "adapter=" + path("short/adapter"),
                       "output_dir=" + path(name)},
                      more));
  }

  // The share of the held-out questions that are answered exactly right.
  double exact(const std::string& name) const {
    const std::string said =
        expect_run({"evaluate", "model=examples/wordnet", "adapter=" + path(name + "/adapter"),
                    "data=examples/wordnet/heldout.jsonl", "max_new_tokens=12", "batch=16"});
    std::smatch found;
    EXPECT_TRUE(
        std::regex_search(said, found, std::regex("exact match: [0-9]+ of 302 \\(([0-9.]+) %")))
        << said;
    return std::stod(found[1]);
  }

  testing::TemporaryFolder folder_;
};

TEST_F(RewardedExample, AddsThirtyPoints) {
  const double before = exact("short");
  EXPECT_GE(before, 10);
  EXPECT_LE(before, 45);
  learn("rewarded");
  EXPECT_GE(exact("rewarded"), before + kGain);
}

// What is rewarded is learned, and nothing else is: with the answers of other questions as
// references there is nothing to find.
TEST_F(RewardedExample, LongOfThreeSeedsAndOfShuffledRewards) {
  const double before = exact("short");
  for (const char* seed : {"1", "2", "3"}) {
    const std::string name = std::string("seed") + seed;
    learn(name, {std::string("seed=") + seed});
    const double after = exact(name);
    EXPECT_GE(after, before + kGain) << seed;
    RecordProperty(name, std::to_string(after));
  }
  learn("shuffled", {"data=examples/wordnet/shuffled.jsonl", "guards=no_equal_rewards"});
  EXPECT_LE(exact("shuffled"), before + 5);
}

}  // namespace
}  // namespace snug::cli
