// Training by the binary on ranks that are processes of MPI: the curve of one rank, and what a user
// is told when ranks disagree, hang or cannot start.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tiny_job.h"

namespace snug::train {
namespace {

// mpirun as root, with more ranks than cores.
void allow_root() {
  ::setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
  ::setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
}

const char* const kCommon =
    "compute_dtype=fp32 learning_rate=5e-4 lr_scheduler_type=constant "
    "max_steps=3 timeout_seconds=60 ";

std::vector<double> losses_of(const TinyJob& job, const std::string& output) {
  std::istringstream lines(cli::contents_of(job.path(output) / "metrics.jsonl"));
  std::vector<double> losses;
  for (std::string line; std::getline(lines, line);)
    losses.push_back(nlohmann::json::parse(line).at("loss").get<double>());
  return losses;
}

void expect_same_curve(const TinyJob& job, const std::string& one, const std::string& many) {
  const std::vector<double> a = losses_of(job, one);
  const std::vector<double> b = losses_of(job, many);
  ASSERT_EQ(a.size(), 3);
  ASSERT_EQ(b.size(), 3) << "one line a step, whatever the number of ranks";
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-5) << "step " << i + 1;
}

class MpiRuns : public ::testing::Test {
 protected:
  MpiRuns() { allow_root(); }
  TinyJob job_;
};

TEST_F(MpiRuns, StartTheirRanksAndFollowOneRank) {
  const std::string base = std::string(kCommon) + "method=full ";
  ASSERT_EQ(job_.run("one", base + "per_device_train_batch_size=4").exit_code, 0);
  const cli::BinaryRun two =
      job_.run("two", base +
                          "per_device_train_batch_size=2 devices=2 strategy=full_shard "
                          "shard_threshold=100");
  ASSERT_EQ(two.exit_code, 0) << two.output();
  expect_same_curve(job_, "one", "two");
  EXPECT_NE(two.err.find("2 by full_shard"), std::string::npos) << two.err;
  const cli::BinaryRun four =
      job_.run("four", base + "per_device_train_batch_size=1 devices=4 strategy=ddp");
  ASSERT_EQ(four.exit_code, 0) << four.output();
  expect_same_curve(job_, "one", "four");
}

// The processes of a run, by what stands in their command lines.
std::vector<pid_t> ranks_of(const fs::path& output) {
  std::vector<pid_t> ranks;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string words = cli::contents_of(entry.path() / "cmdline");
    const bool is_rank = words.find("output_dir=" + output.string()) != std::string::npos &&
                         cli::contents_of(entry.path() / "environ").find("OMPI_COMM_WORLD_RANK") !=
                             std::string::npos;
    if (is_rank) ranks.push_back(static_cast<pid_t>(std::stol(name)));
  }
  return ranks;
}

int64_t newest_checkpoint(const fs::path& output) {
  int64_t newest = 0;
  for (const auto& entry : fs::directory_iterator(output)) {
    const std::string name = entry.path().filename().string();
    constexpr std::string_view kPrefix = "checkpoint-";
    if (name.starts_with(kPrefix))
      newest = std::max(newest, static_cast<int64_t>(std::stoll(name.substr(kPrefix.size()))));
  }
  return newest;
}

// Whoever is killed, whenever: the others end, and the run goes on from its last checkpoint, on
// another number of ranks too.
TEST_F(MpiRuns, AKilledRankEndsAllAndTheRunResumes) {
  const std::string base = std::string(kCommon) + "method=full save_steps=3 save_total_limit=2 ";
  const testing::TemporaryFolder streams;
  const std::string two =
      base + "per_device_train_batch_size=2 devices=2 strategy=full_shard shard_threshold=100 ";
  const pid_t launcher =
      cli::start_snug(job_.words("killed", two + "max_steps=100000"), streams.path());
  ASSERT_TRUE(job_.wait_for_steps("killed", 5));
  const std::vector<pid_t> ranks = ranks_of(job_.path("killed"));
  ASSERT_EQ(ranks.size(), 2);
  const auto killed = std::chrono::steady_clock::now();
  ::kill(ranks.back(), SIGKILL);
  EXPECT_NE(cli::wait_for(launcher), 0);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - killed;
  EXPECT_LT(took.count(), 10);
  const std::string err = cli::contents_of(streams / "err");
  EXPECT_NE(err.find("rank"), std::string::npos) << err;
  const int64_t saved = newest_checkpoint(job_.path("killed"));
  ASSERT_GE(saved, 3);
  const auto resume = [&](const std::string& words, int64_t steps) {
    const cli::BinaryRun run =
        job_.run("killed", words + fmt::format("resume_from_checkpoint=auto max_steps={}", steps));
    EXPECT_EQ(run.exit_code, 0) << run.output();
    EXPECT_NE(run.err.find("resumed from"), std::string::npos) << run.err;
  };
  resume(two, saved + 1);
  resume(base + "per_device_train_batch_size=4 ", saved + 2);
}

TEST_F(MpiRuns, AHangingRankIsNamed) {
  const testing::TemporaryFolder streams;
  const std::vector<std::string> words =
      job_.words("hangs", std::string(kCommon) + "devices=2 max_steps=100000 timeout_seconds=2");
  const pid_t launcher = cli::start_snug(words, streams.path());
  ASSERT_TRUE(job_.wait_for_steps("hangs", 2));
  const std::vector<pid_t> ranks = ranks_of(job_.path("hangs"));
  ASSERT_EQ(ranks.size(), 2);
  ::kill(ranks.back(), SIGSTOP);
  const int code = cli::wait_for(launcher);
  for (const pid_t rank : ranks) ::kill(rank, SIGKILL);
  EXPECT_NE(code, 0);
  const std::string err = cli::contents_of(streams / "err");
  EXPECT_NE(err.find("did not come within 2 s"), std::string::npos) << err;
  EXPECT_NE(err.find("step "), std::string::npos) << err;
}

TEST_F(MpiRuns, RanksThatAreToldOtherThingsAreRefused) {
  const cli::BinaryRun run = cli::run_snug(job_.words("two", std::string(kCommon) + "devices=2 "
                                                                                    "nodes=2"));
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_NE(run.err.find("started alone"), std::string::npos) << run.err;
  const cli::BinaryRun odd = cli::run_snug(job_.words(
      "two", std::string(kCommon) + "devices=3 strategy=hybrid_full_shard shard_devices=2"));
  EXPECT_EQ(odd.exit_code, 2);
  EXPECT_NE(odd.err.find("does not divide"), std::string::npos) << odd.err;
}

}  // namespace
}  // namespace snug::train
