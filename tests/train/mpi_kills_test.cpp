// A rank that is killed, whichever and whenever: all others end within 10 seconds, the error names
// the rank, and the run resumes from its last checkpoint to the bits of a run that nothing
// disturbed. A few kills in "make test"; SNUG_KILLS=N makes N, at other moments too.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <random>

#include "mpi_job.h"

namespace snug::train {
namespace {

using Clock = std::chrono::steady_clock;

struct Strategy {
  int ranks;
  const char* words;
};

constexpr auto kStrategies = std::to_array<Strategy>({
    {2, "method=full strategy=full_shard shard_threshold=100"},
    {3, "method=lora strategy=ddp"},
    {4, "method=full strategy=hybrid_full_shard shard_devices=2 shard_threshold=100"},
    {2, "method=full strategy=zero1 shard_threshold=100 optim=adamw_8bit"},
    {3, "method=full strategy=zero2 shard_threshold=100 gradient_accumulation_steps=2"},
    {2, "method=qlora strategy=shard_grad_op shard_threshold=100 save_total_limit=1"},
    {4, "method=lora strategy=full_shard shard_threshold=10"},
});

// When the rank is killed: some time after the second step, as soon as a checkpoint is being
// written, or some time after the start.
enum class Moment : uint8_t { training, saving, starting };

bool is_saving(const fs::path& output) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(output, error))
    if (entry.path().filename().string().find(".snug-tmp-") != std::string::npos) return true;
  return false;
}

class MpiKills : public ::testing::Test {
 protected:
  MpiKills() { prepare_mpi(); }

  static std::chrono::milliseconds random_time(int most_ms) {
    return std::chrono::milliseconds(std::uniform_int_distribution<int>(0, most_ms)(generator()));
  }
  static std::mt19937& generator() {
    static std::mt19937 generator(1);
    return generator;
  }

  void wait_for(Moment moment, const std::string& output) const {
    if (moment == Moment::starting) return std::this_thread::sleep_for(random_time(600));
    ASSERT_TRUE(job_.wait_for_steps(output, 2));
    if (moment == Moment::training) std::this_thread::sleep_for(random_time(300));
    const auto limit = Clock::now() + std::chrono::seconds(20);
    while (moment == Moment::saving && Clock::now() < limit && !is_saving(job_.path(output)))
      std::this_thread::sleep_for(std::chrono::microseconds(200));
  }

  // Returns the rank that was killed, or -1.
  int kill_one(const std::string& output, int ranks) const {
    const auto limit = Clock::now() + std::chrono::seconds(20);
    auto processes = ranks_of(job_.path(output));
    while (static_cast<int>(processes.size()) < ranks && Clock::now() < limit)
      processes = ranks_of(job_.path(output));
    if (static_cast<int>(processes.size()) != ranks) return -1;
    const int rank = std::uniform_int_distribution<int>(0, ranks - 1)(generator());
    return ::kill(processes.at(rank), SIGKILL) == 0 ? rank : -1;
  }

  void check_bits(const std::string& output, const std::string& words, int64_t step) const {
    const std::string undisturbed = output + "-undisturbed";
    const cli::BinaryRun run = job_.run(undisturbed, words + fmt::format("max_steps={}", step));
    ASSERT_EQ(run.exit_code, 0) << run.output();
    for (const char* file : {"model/model.safetensors", "adapter/adapter_model.safetensors"}) {
      if (!fs::exists(job_.path(undisturbed) / file)) continue;
      EXPECT_TRUE(cli::contents_of(job_.path(output) / file) ==
                  cli::contents_of(job_.path(undisturbed) / file))
          << file << " has other bits than without a kill";
    }
  }

  void resume(const std::string& output, const std::string& words, int64_t saved,
              int64_t steps) const {
    const cli::BinaryRun run =
        job_.run(output, words + fmt::format("resume_from_checkpoint=auto max_steps={}", steps));
    ASSERT_EQ(run.exit_code, 0) << run.output();
    if (saved > 0) {
      EXPECT_NE(run.err.find(fmt::format("at step {}", saved)), std::string::npos) << run.err;
    }
  }

  void check(const Strategy& strategy, Moment moment, const std::string& output) {
    const std::string words = fmt::format("{} save_steps=3 save_total_limit=2 {} devices={} ",
                                          kMpiCommon, strategy.words, strategy.ranks);
    const testing::TemporaryFolder streams;
    const pid_t launcher =
        cli::start_snug(job_.words(output, words + "max_steps=100000"), streams.path());
    wait_for(moment, output);
    const int rank = kill_one(output, strategy.ranks);
    const auto killed = Clock::now();
    const int code = cli::wait_for(launcher);
    const std::chrono::duration<double> took = Clock::now() - killed;
    const std::string err = cli::contents_of(streams / "err");
    ASSERT_GE(rank, 0) << "no rank was killed: " << err;
    EXPECT_NE(code, 0);
    EXPECT_LT(took.count(), 10);
    EXPECT_TRUE(ranks_of(job_.path(output)).empty()) << "a rank is left";
    EXPECT_NE(err.find(fmt::format("rank {} ", rank)), std::string::npos) << err;
    // Said by another rank, and not by the launcher alone, which ends those that only start.
    if (moment != Moment::starting) {
      EXPECT_NE(err.find(fmt::format("rank {} is gone", rank)), std::string::npos) << err;
    }
    const int64_t saved = newest_checkpoint(job_.path(output));
    resume(output, words, saved, saved + 2);
    if (!HasFatalFailure()) check_bits(output, words, saved + 2);
  }

  TinyJob job_;
};

TEST_F(MpiKills, EndAllAndTheRunResumes) {
  const char* wanted = std::getenv("SNUG_KILLS");
  const int kills = wanted == nullptr ? 3 : std::atoi(wanted);
  constexpr std::array kMoments{Moment::training, Moment::saving, Moment::training,
                                Moment::starting};
  for (int number = 0; number < kills; ++number) {
    const Strategy& strategy = kStrategies.at(static_cast<size_t>(number) % kStrategies.size());
    const Moment moment = kMoments.at(static_cast<size_t>(number) % kMoments.size());
    SCOPED_TRACE(fmt::format("kill {}: {}", number, strategy.words));
    check(strategy, moment, fmt::format("run-{}", number));
    if (HasFatalFailure()) return;
  }
  fmt::print("{} kills\n", kills);
}

}  // namespace
}  // namespace snug::train
