// A run of four ranks that is killed goes on with another number of ranks: its losses are those of
// the run that nothing disturbed, within rounding, and with four ranks the same bits.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "mpi_job.h"

namespace snug::train {
namespace {

constexpr int kRanks = 4;
constexpr int kStepRows = 8;  // on any number of ranks
constexpr int64_t kStepsAfter = 8;
constexpr double kMaxLossDistance = 1e-5;

// Rows that differ in length and words, so that a step with other rows has another loss.
std::string records() {
  std::string text;
  for (int i = 0; i < 29; ++i)
    text +=
        fmt::format("{{\"instruction\": \"Count {}.\", \"input\": \"\", \"output\": \"{}\"}}\n",
                    i * 7, std::string(static_cast<size_t>(3 + 5 * i % 17), char('a' + i % 26)));
  return text;
}

class MpiResume : public ::testing::Test {
 protected:
  MpiResume() {
    prepare_mpi();
    job_.folder().write("records.jsonl", records());
  }

  std::string words_of(const std::string& method, int ranks) const {
    return fmt::format(
        "{} {} data={} shard_threshold=100 save_steps=3 per_device_train_batch_size={} {} ",
        kMpiCommon, method, job_.path("records.jsonl").string(), kStepRows / ranks,
        ranks > 1 ? fmt::format("devices={}", ranks) : "");
  }

  // Kills one of four ranks once the run has a checkpoint; returns the step of the last one.
  int64_t kill_after_a_checkpoint(const std::string& output, const std::string& method) const {
    const testing::TemporaryFolder streams;
    const pid_t launcher = cli::start_snug(
        job_.words(output, words_of(method, kRanks) + "max_steps=100000"), streams.path());
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (newest_checkpoint(job_.path(output)) == 0 && std::chrono::steady_clock::now() < limit)
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    const std::map<int, pid_t> processes = ranks_of(job_.path(output));
    if (processes.contains(2)) ::kill(processes.at(2), SIGKILL);
    EXPECT_NE(cli::wait_for(launcher), 0);
    EXPECT_EQ(processes.size(), size_t{kRanks}) << cli::contents_of(streams / "err");
    return newest_checkpoint(job_.path(output));
  }

  // Makes "killed" and, of as many steps as those that go on from it will have, "undisturbed".
  void prepare(const std::string& method) {
    method_ = method;
    saved_ = kill_after_a_checkpoint("killed", method);
    ASSERT_GT(saved_, 0);
    const cli::BinaryRun run = job_.run("undisturbed", words_of(method, kRanks) + steps());
    ASSERT_EQ(run.exit_code, 0) << run.output();
    expected_ = values_of(job_, "undisturbed", "loss");
    ASSERT_EQ(expected_.size(), static_cast<size_t>(saved_ + kStepsAfter));
    // Steps with other rows have other losses, far beyond rounding.
    const auto [least, most] = std::minmax_element(expected_.end() - kStepsAfter, expected_.end());
    ASSERT_GT(*most - *least, 1000 * kMaxLossDistance);
  }

  std::string steps() const { return fmt::format("max_steps={} ", saved_ + kStepsAfter); }

  // Goes on from a copy of the killed run's folder.
  void expect_same_curve(int ranks) const {
    SCOPED_TRACE(fmt::format("on {} ranks, {}", ranks, method_));
    const std::string output = fmt::format("on-{}", ranks);
    fs::copy(job_.path("killed"), job_.path(output), fs::copy_options::recursive);
    const cli::BinaryRun run =
        job_.run(output, words_of(method_, ranks) + steps() + "resume_from_checkpoint=auto");
    ASSERT_EQ(run.exit_code, 0) << run.output();
    EXPECT_NE(run.err.find(fmt::format("at step {}", saved_)), std::string::npos) << run.err;
    const std::vector<double> losses = values_of(job_, output, "loss");
    ASSERT_EQ(losses.size(), expected_.size()) << "one line a step";
    const double most = ranks == kRanks ? 0 : kMaxLossDistance;
    for (size_t i = 0; i < losses.size(); ++i)
      EXPECT_NEAR(losses[i], expected_[i], most) << "step " << i + 1;
    if (ranks == kRanks) expect_same_model(output);
  }

  void expect_same_model(const std::string& output) const {
    int models = 0;
    for (const char* file : {"model/model.safetensors", "adapter/adapter_model.safetensors"}) {
      if (!fs::exists(job_.path("undisturbed") / file)) continue;
      ++models;
      EXPECT_TRUE(cli::contents_of(job_.path(output) / file) ==
                  cli::contents_of(job_.path("undisturbed") / file))
          << file << " has other bits than without a kill";
    }
    EXPECT_EQ(models, 1);
  }

 private:
  TinyJob job_;
  std::string method_;
  int64_t saved_ = 0;  // the step of the checkpoint that a kill left
  std::vector<double> expected_;
};

TEST_F(MpiResume, OfFourRanksOnFourTwoAndOne) {
  prepare("method=full strategy=full_shard");
  for (const int ranks : {4, 2, 1})
    if (!HasFatalFailure()) expect_same_curve(ranks);
}

// In "make test-long".
TEST_F(MpiResume, OfFourRanksOnEightRanks) {
  prepare("method=full strategy=full_shard");
  if (!HasFatalFailure()) expect_same_curve(8);
}

// In "make test-long": quantised weights and dropout.
TEST_F(MpiResume, OfAnAdapterOnEightRanksAndOthers) {
  prepare("method=qlora strategy=zero2 lora_dropout=0.1");
  for (const int ranks : {4, 8, 2, 1})
    if (!HasFatalFailure()) expect_same_curve(ranks);
}

}  // namespace
}  // namespace snug::train
