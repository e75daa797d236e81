// Training by the binary on ranks that are processes of MPI, each with an emulated card, which an
// emulated NCCL connects: the curve of one rank, the same bits on a second run, and an end where a
// rank hangs.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <cmath>
#include <csignal>
#include <nlohmann/json.hpp>
#include <sstream>

#include "mpi_job.h"

namespace snug::train {
namespace {

const char* const kCommon =
    "backend=cuda compute_dtype=fp32 learning_rate=5e-4 lr_scheduler_type=constant method=full "
    "deterministic=true max_steps=3 timeout_seconds=60 max_length=160 ";

class CardRanks : public ::testing::Test {
 protected:
  CardRanks() { prepare_mpi(); }

  std::vector<double> losses_of(const std::string& output, const std::string& words) const {
    const cli::BinaryRun run = job_.run(output, kCommon + words);
    EXPECT_EQ(run.exit_code, 0) << run.output();
    std::istringstream lines(cli::contents_of(job_.path(output) / "metrics.jsonl"));
    std::vector<double> losses;
    for (std::string line; std::getline(lines, line);)
      losses.push_back(nlohmann::json::parse(line).at("loss").get<double>());
    EXPECT_EQ(losses.size(), 3) << "one line a step, whatever the number of ranks";
    losses.resize(3);
    return losses;
  }

  TinyJob job_;
};

TEST_F(CardRanks, FollowOneRank) {
  const std::vector<double> one = losses_of("one", "per_device_train_batch_size=4");
  const std::string sharded =
      "per_device_train_batch_size=2 devices=2 strategy=full_shard shard_threshold=100 ";
  const std::vector<std::pair<std::string, std::string>> runs{
      {"two", sharded},
      {"bf16", sharded + "reduce_dtype=bf16"},
      // With a scale that no step finds too large; sums travel in fp32.
      {"fp16", sharded + "compute_dtype=fp16 loss_scale=128"},
      {"four", "per_device_train_batch_size=1 devices=4 strategy=ddp"},
      {"hybrid",
       "per_device_train_batch_size=1 devices=4 strategy=hybrid_full_shard shard_devices=2 "
       "shard_threshold=100"}};
  for (const auto& [name, words] : runs) {
    const std::vector<double> many = losses_of(name, words);
    const double most = name == "fp16" ? 5e-3 : name == "bf16" ? 1e-3 : 1e-5;
    for (size_t i = 0; i < one.size(); ++i)
      EXPECT_NEAR(one[i], many[i], most) << name << ", step " << i + 1;
  }
  EXPECT_EQ(losses_of("two_again", sharded), losses_of("two_more", sharded));
}

// Whoever notices first, the host's communicator or the card's: the others end with an error.
TEST_F(CardRanks, AHangingRankIsAnError) {
  const testing::TemporaryFolder streams;
  const pid_t launcher = cli::start_snug(
      job_.words("hangs", std::string(kCommon) +
                              "devices=2 max_steps=100000 timeout_seconds=2 strategy=full_shard "
                              "shard_threshold=100"),
      streams.path());
  ASSERT_TRUE(job_.wait_for_steps("hangs", 1));
  const std::map<int, pid_t> ranks = ranks_of(job_.path("hangs"));
  ASSERT_EQ(ranks.size(), 2);
  ::kill(ranks.at(1), SIGSTOP);
  const int code = cli::wait_for(launcher);
  ::kill(ranks.at(1), SIGKILL);
  EXPECT_NE(code, 0);
  const std::string err = cli::contents_of(streams / "err");
  EXPECT_NE(err.find("did not come within 2 s"), std::string::npos) << err;
  EXPECT_NE(err.find("step "), std::string::npos) << err;
}

}  // namespace
}  // namespace snug::train
