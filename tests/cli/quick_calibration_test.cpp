// A first run measures the machine, keeps that, and a second one does not measure again. Other
// tests run with this switched off (tests/run_isolated).
#include <gtest/gtest.h>
#include <sys/prctl.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "base/cache_folder.h"
#include "base/file.h"
#include "binary_run.h"
#include "tiny_model.h"

namespace snug::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::contains;

// A cache of its own, and measuring switched on.
class QuickCalibration : public ::testing::Test {
 protected:
  QuickCalibration() {
    write_tiny_shape(folder_, "shape");
    folder_.write("data.jsonl", kTinyData);
    set_cache(folder_ / "cache");
    // Enough on a busy machine; an idle one is done before.
    setenv("SNUG_CALIBRATION_SECONDS", "10", 1);
  }
  ~QuickCalibration() override {
    setenv("SNUG_CALIBRATION_SECONDS", "0", 1);
    setenv("XDG_CACHE_HOME", cache_before_.c_str(), 1);
  }
  static void set_cache(const fs::path& path) { setenv("XDG_CACHE_HOME", path.c_str(), 1); }

  std::vector<std::string> train(const char* output, unsigned threads = 1) const {
    return joined(
        {"train", "model=" + (folder_ / "shape").string(),
         "data=" + (folder_ / "data.jsonl").string(), "output_dir=" + (folder_ / output).string()},
        words_of("init=random max_length=256 max_steps=2 threads=" + std::to_string(threads)));
  }
  json plan_of(const char* output) const {
    return json::parse(contents_of(folder_ / output / "plan.json"));
  }
  std::vector<fs::path> kept() const {
    std::vector<fs::path> files;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder_ / "cache/snug", error))
      files.push_back(entry.path());
    return files;
  }

  const std::string cache_before_ = base::cache_folder().parent_path();
  const testing::TemporaryFolder folder_;
};

// Unless others keep this machine busy, which the run says then.
TEST_F(QuickCalibration, IsMadeByTheFirstRunAndUsedByAll) {
  const BinaryRun first = run_snug(train("first"));
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_TRUE(contains(first.err, "measuring this machine")) << first.err;
  EXPECT_FALSE(contains(first.err, "measuring failed")) << first.err;
  if (contains(first.err, "kept this machine busy")) {
    EXPECT_EQ(plan_of("first")["step_basis"], "assumed");
    EXPECT_TRUE(kept().empty());
    return;
  }
  EXPECT_EQ(plan_of("first")["step_basis"], "calibrated quickly");
  ASSERT_EQ(kept().size(), 1U);
  EXPECT_TRUE(kept()[0].filename().string().starts_with("quick-calibration-"));
  EXPECT_EQ(json::parse(contents_of(kept()[0]))["grid"], "quick");

  const auto written = fs::last_write_time(kept()[0]);
  const BinaryRun second = run_snug(train("second"));
  ASSERT_EQ(second.exit_code, 0) << second.err;
  EXPECT_FALSE(contains(second.err, "measuring this machine")) << second.err;
  EXPECT_EQ(plan_of("second")["step_basis"], "calibrated quickly");
  EXPECT_EQ(fs::last_write_time(kept()[0]), written);
}

// Four threads that compute for every processor leave hardly a round of it undisturbed: a round of
// one thread may end before another has its turn, but not of a thread for every processor. Next to
// other programs its seconds may be over before it has measured anything.
TEST_F(QuickCalibration, OfABusyMachineIsNotKept) {
  setenv("SNUG_CALIBRATION_SECONDS", "2", 1);
  std::atomic<bool> stops = false;
  std::vector<std::thread> others;
  for (unsigned i = 0; i < 4 * std::thread::hardware_concurrency(); ++i)
    others.emplace_back([&] {
      while (!stops) {
      }
    });
  const BinaryRun run = run_snug(train("run", std::max(2U, std::thread::hardware_concurrency())));
  stops = true;
  for (std::thread& other : others) other.join();
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(contains(run.err, "other programs kept this machine busy") ||
              contains(run.err, "measuring failed"))
      << run.err;
  EXPECT_EQ(plan_of("run")["step_basis"], "assumed");
  EXPECT_TRUE(kept().empty());
}

TEST_F(QuickCalibration, PlansDoNotMeasure) {
  const BinaryRun run = run_snug({"plan", "--json", "model=" + (folder_ / "shape").string()});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(json::parse(run.out)["step_basis"], "assumed");
  EXPECT_TRUE(kept().empty());
}

TEST_F(QuickCalibration, IsSwitchedOffByTheEnvironment) {
  setenv("SNUG_CALIBRATION_SECONDS", "0", 1);
  const BinaryRun run = run_snug(train("run"));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(plan_of("run")["step_basis"], "assumed");
  EXPECT_TRUE(kept().empty());
}

TEST_F(QuickCalibration, SecondsMustBeANumber) {
  setenv("SNUG_CALIBRATION_SECONDS", "soon", 1);
  const BinaryRun run = run_snug(train("run"));
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_TRUE(contains(run.err, "SNUG_CALIBRATION_SECONDS is \"soon\"")) << run.err;
}

// The whole grid takes minutes; who has less gets the steps that fit, and is told how many do not.
TEST_F(QuickCalibration, TheWholeGridHasItsLimitToo) {
  setenv("SNUG_CALIBRATION_SECONDS", "0.1", 1);
  const fs::path path = folder_ / "calibration.json";
  const BinaryRun run = run_snug(joined({"bench", "calibrate", "calibration=" + path.string()},
                                        words_of("max_steps=3 threads=1")));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(contains(run.err, "2 of 3 steps are left out")) << run.err;
  const json made = json::parse(contents_of(path));
  EXPECT_EQ(made["grid"], "full");
  EXPECT_GT(made["samples"].size(), 10U);
}

// A small card measures what it holds.
TEST_F(QuickCalibration, StepsThatTheDeviceDoesNotHoldAreLeftOut) {
  const std::string path = folder_ / "calibration.json";
  const auto calibrate = [&](const char* memory) {
    return run_snug(joined({"bench", "calibrate-quickly", "calibration=" + path},
                           words_of(std::string("max_steps=4 threads=1 device_memory=") + memory)));
  };
  const BinaryRun some = calibrate("10MiB");
  ASSERT_EQ(some.exit_code, 0) << some.err;
  EXPECT_TRUE(contains(some.err, "1 of 4 steps are left out: the device's memory")) << some.err;
  const BinaryRun none = calibrate("1MiB");
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_TRUE(contains(none.err, "fits into the device's memory")) << none.err;
}

TEST_F(QuickCalibration, CacheThatTakesNothingIsNoError) {
  folder_.write("file", "");
  set_cache(folder_ / "file");
  const BinaryRun run = run_snug(train("run"));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(contains(run.err, "could not be kept")) << run.err;
  EXPECT_FALSE(contains(run.err, "measuring this machine")) << run.err;
  EXPECT_EQ(plan_of("run")["step_basis"], "assumed");
}

// Whoever is left of a killed run becomes this process's child: there must be nobody.
TEST_F(QuickCalibration, EndsWithTheRun) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  const pid_t run = start_snug(train("run"), folder_.path());
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!contains(contents_of(folder_ / "err"), "measuring this machine") &&
         std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  // Until the other process is there.
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  ::kill(run, SIGTERM);
  EXPECT_EQ(wait_for(run), 128 + SIGTERM);
  int status = 0;
  pid_t left = 0;
  while ((left = ::waitpid(-1, &status, 0)) > 0) EXPECT_EQ(WTERMSIG(status), SIGKILL);
  ::prctl(PR_SET_CHILD_SUBREAPER, 0);
  EXPECT_FALSE(fs::exists(folder_ / "run"));
}

}  // namespace
}  // namespace snug::cli
