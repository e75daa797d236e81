// A run outlives its terminal and its pipes: what it says may go nowhere, its work does not.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <array>
#include <functional>

#include "tiny_job.h"

namespace snug::train {
namespace {

using cli::contents_of;
using cli::start_snug;
using cli::wait_for;
using testing::contains;

constexpr const char* kLong = "max_steps=100000 gradient_accumulation_steps=4";

// The reader of standard error dies first, as `tee` does; a moment later comes the signal.
TEST(LostOutputs, APipeWithoutAReaderCostsNoCheckpoint) {
  const TinyJob job;
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const pid_t process = start_snug(job.words("run", kLong), job.folder().path(),
                                   [&] { ::dup2(ends[1], STDERR_FILENO); });
  ::close(ends[1]);
  std::string said;
  std::array<char, 256> buffer{};
  while (said.find("step 3/") == std::string::npos) {
    const ssize_t got = ::read(ends[0], buffer.data(), buffer.size());
    ASSERT_GT(got, 0) << said;
    said.append(buffer.data(), static_cast<size_t>(got));
  }
  ::close(ends[0]);
  EXPECT_TRUE(job.wait_for_steps("run", 8));
  ::kill(process, SIGINT);
  EXPECT_EQ(wait_for(process), 128 + SIGINT);
  EXPECT_TRUE(has_checkpoint(job.path("run")));
  const std::string log = contents_of(job.path("run/run.log"));
  EXPECT_TRUE(contains(log, "trainable params: ")) << "what was said before the folder was there";
  EXPECT_TRUE(contains(log, "standard error cannot be written (Broken pipe)"));
  EXPECT_TRUE(contains(log, "checkpoint saved, resume_from_checkpoint=auto continues"));
}

// What standard error is, and how the log names what is wrong with it.
struct Sink {
  std::string name;
  std::function<void(const TinyJob& job)> open;
  std::string reason;
};

constexpr rlim_t kFileLimit = rlim_t{1} << 20;

// A log file that is as large as files may be.
void open_grown_file(const TinyJob& job) {
  const int file = ::open(job.path("grown").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  if (::ftruncate(file, kFileLimit) != 0) ::_exit(126);
  ::dup2(file, STDERR_FILENO);
  const rlimit limit{kFileLimit, kFileLimit};
  ::setrlimit(RLIMIT_FSIZE, &limit);
}

const std::vector<Sink> kSinks{
    {"Closed", [](const TinyJob&) { ::close(STDERR_FILENO); }, "Bad file descriptor"},
    {"FullDisk", [](const TinyJob&) { ::dup2(::open("/dev/full", O_WRONLY), STDERR_FILENO); },
     "No space left on device"},
    {"FileSizeLimit", open_grown_file, "File too large"},
    {"AllClosed",
     [](const TinyJob&) {
       for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::close(stream);
     },
     "Bad file descriptor"},
};

class LostOutput : public ::testing::TestWithParam<Sink> {
 protected:
  static void SetUpTestSuite() {
    const TinyJob job;
    ASSERT_EQ(job.run("whole", kSteps).exit_code, 0);
    whole_ = job.adapter("whole");
  }

  static constexpr const char* kSteps = "max_steps=80 save_total_limit=1";
  static std::string whole_;  // what a run makes that is left alone
};

std::string LostOutput::whole_;

// Stopped by a signal and resumed, all of it without a standard error.
TEST_P(LostOutput, CostsNothing) {
  const TinyJob job;
  const auto start = [&] {
    return start_snug(job.words("run", std::string(kSteps) + " resume_from_checkpoint=auto"),
                      job.folder().path(), [&] { GetParam().open(job); });
  };
  const pid_t first = start();
  ASSERT_TRUE(job.wait_for_steps("run", 2));
  ::kill(first, SIGTERM);
  EXPECT_EQ(wait_for(first), 128 + SIGTERM);
  EXPECT_TRUE(has_checkpoint(job.path("run")));
  EXPECT_EQ(wait_for(start()), 0);
  EXPECT_FALSE(whole_.empty());
  EXPECT_EQ(job.adapter("run"), whole_);
  EXPECT_TRUE(contains(contents_of(job.path("run/run.log")),
                       "standard error cannot be written (" + GetParam().reason + ")"));
}

INSTANTIATE_TEST_SUITE_P(All, LostOutput, ::testing::ValuesIn(kSinks),
                         [](const auto& sink) { return sink.param.name; });

// Checkpoints that may not be written whole are an error that names the file.
TEST(LostOutputs, AFileSizeLimitBelowACheckpointIsTold) {
  const TinyJob job;
  const pid_t process = start_snug(job.words("run", "max_steps=1"), job.folder().path(), [] {
    const rlimit limit{8192, 8192};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  });
  EXPECT_EQ(wait_for(process), 2);
  const std::string log = contents_of(job.path("run/run.log"));
  EXPECT_TRUE(contains(log, "checkpoint-1"));
  EXPECT_TRUE(contains(log, "ulimit -f"));
  EXPECT_FALSE(has_checkpoint(job.path("run")));
}

// Says so rarely that run.log stays below what metrics.jsonl reaches.
pid_t start_limited(const TinyJob& job, rlim_t bytes) {
  return start_snug(job.words("run", "max_steps=600 logging_steps=100000 lora_r=1"),
                    job.folder().path(), [bytes] {
                      const rlimit limit{bytes, bytes};
                      ::setrlimit(RLIMIT_FSIZE, &limit);
                    });
}

// metrics.jsonl grows until a line of it does not fit; the files of a checkpoint do.
TEST(LostOutputs, AMetricsLineThatCannotBeWrittenCostsNoStep) {
  const TinyJob job;
  EXPECT_EQ(wait_for(start_limited(job, rlim_t{64} << 10)), 2);
  const std::string log = contents_of(job.path("run/run.log"));
  EXPECT_TRUE(contains(log, "run/metrics.jsonl: File too large"));
  EXPECT_TRUE(contains(log, "checkpoint saved, resume_from_checkpoint=auto continues"));
  ASSERT_TRUE(has_checkpoint(job.path("run")));
  const std::string steps = "max_steps=600 logging_steps=100000 lora_r=1";
  const cli::BinaryRun resumed = job.run("run", steps + " resume_from_checkpoint=auto");
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_TRUE(contains(resumed.err, "resumed from"));
  EXPECT_TRUE(contains(resumed.err, "metrics.jsonl has no lines of step "));
  ASSERT_EQ(job.run("whole", steps).exit_code, 0);
  EXPECT_EQ(job.adapter("run"), job.adapter("whole"));
}

TEST(LostOutputs, NeitherMetricsNorACheckpointCanBeWritten) {
  const TinyJob job;
  EXPECT_EQ(wait_for(start_limited(job, 8192)), 2);
  const std::string log = contents_of(job.path("run/run.log"));
  EXPECT_TRUE(contains(log, "run/metrics.jsonl: File too large"));
  EXPECT_TRUE(contains(log, "could not be saved either: cannot reserve"));
  EXPECT_FALSE(has_checkpoint(job.path("run")));
}

// A terminal that closes sends SIGHUP twice, and wrappers forward what their group was sent too.
TEST(LostOutputs, OneRequestMayComeInSeveralSignals) {
  const TinyJob job;
  const pid_t process = start_snug(job.words("run", kLong), job.folder().path());
  ASSERT_TRUE(job.wait_for_steps("run", 2));
  for (const int signal : {SIGHUP, SIGHUP, SIGTERM, SIGTERM}) ::kill(process, signal);
  const int code = wait_for(process);
  EXPECT_TRUE(code == 128 + SIGHUP || code == 128 + SIGTERM) << code;
  EXPECT_TRUE(has_checkpoint(job.path("run")));
}

// Reading much data keeps the run in its preparation.
TEST(LostOutputs, ASignalBeforeTrainingEndsItAndLeavesNothing) {
  const TinyJob job;
  std::string much;
  while (much.size() < size_t{64} << 20) much += cli::kTinyData;
  job.folder().write("much.jsonl", much);
  const pid_t process =
      start_snug(job.words("run", "data=" + job.path("much.jsonl").string()), job.folder().path());
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  ::kill(process, SIGTERM);
  EXPECT_EQ(wait_for(process), 128 + SIGTERM);
  EXPECT_FALSE(fs::exists(job.path("run")));
}

}  // namespace
}  // namespace snug::train
