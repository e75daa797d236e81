// Whose the files in an output folder are: only what a run of Snug wrote is ever removed or
// replaced, nothing that the job reads, and nothing of two runs is mixed.
#include <gtest/gtest.h>
#include <signal.h>

#include <functional>

#include "tiny_job.h"

namespace snug::train {
namespace {

using cli::BinaryRun;
using cli::contents_of;
using cli::start_snug;
using cli::wait_for;
using testing::contains;

constexpr const char* kOverwrite = "max_steps=1 overwrite_output_dir=true ";

void expect_refused(const BinaryRun& run, const std::vector<std::string>& parts) {
  EXPECT_EQ(run.exit_code, 2) << run.err;
  for (const std::string& part : parts) EXPECT_TRUE(contains(run.last_line(), part));
}

// The base model is read through links to what an earlier run wrote into the output folder.
TEST(RunFolder, KeepsWhatTheJobReadsByAnotherPath) {
  const TinyJob job;
  ASSERT_EQ(job.run("run", "method=full max_steps=1").exit_code, 0);
  const fs::path weights = job.path("run/model/model.safetensors");
  const std::string before = contents_of(weights);
  ASSERT_FALSE(before.empty());
  for (const std::string name : {"symbolic", "hard"}) {
    fs::create_directory(job.path(name));
    for (const auto& entry : fs::directory_iterator(job.path("run/model"))) {
      const fs::path link = job.path(name) / entry.path().filename();
      name == "hard" ? fs::create_hard_link(entry.path(), link)
                     : fs::create_symlink(entry.path(), link);
    }
    const std::string words = "init=files model=" + job.path(name).string();
    expect_refused(job.run("run", kOverwrite + words), {"model", "run/model/", "choose another"});
    EXPECT_EQ(contents_of(weights), before) << name;
    EXPECT_EQ(job.run("other", kOverwrite + words).exit_code, 0) << name;
  }
}

TEST(RunFolder, KeepsWhatNoRunWrote) {
  const TinyJob job;
  for (const std::string name : {"model/mine", "adapter/mine", "checkpoint-7/mine", "plan.json"}) {
    fs::remove_all(job.path("run"));
    job.folder().write("run/" + name, "precious");
    expect_refused(job.run("run", kOverwrite), {name.substr(0, name.find('/')), "only what a run"});
    EXPECT_EQ(contents_of(job.path("run/" + name)), "precious") << name;
  }
}

// Nothing is in the way there: a user's other files stay, next to the run's.
TEST(RunFolder, RunsNextToFilesOfOtherNames) {
  const TinyJob job;
  job.folder().write("run/mine.txt", "precious");
  for (int times = 0; times < 2; ++times)
    ASSERT_EQ(job.run("run", kOverwrite).exit_code, 0) << "its own is replaced";
  EXPECT_EQ(contents_of(job.path("run/mine.txt")), "precious");
}

// What a user puts into a folder of a run is the user's.
TEST(RunFolder, KeepsWhatWasAddedToARun) {
  const TinyJob job;
  ASSERT_EQ(job.run("run", "max_steps=1").exit_code, 0);
  for (const std::string name : {"adapter/notes.txt", "checkpoint-1/notes.txt"}) {
    job.folder().write("run/" + name, "precious");
    expect_refused(job.run("run", kOverwrite), {name});
    EXPECT_EQ(contents_of(job.path("run/" + name)), "precious") << name;
    fs::rename(job.path("run/" + name), job.path("notes"));
  }
  EXPECT_EQ(job.run("run", kOverwrite).exit_code, 0);
}

// Found before anything is trained, not when the result is written.
TEST(RunFolder, AResultInTheWayIsFoundBeforeTraining) {
  const TinyJob job;
  ASSERT_EQ(job.run("run", "max_steps=1").exit_code, 0);
  fs::remove_all(job.path("run/adapter"));
  job.folder().write("run/adapter/mine", "precious");
  const std::string metrics = contents_of(job.path("run/metrics.jsonl"));
  expect_refused(job.run("run", "max_steps=1 resume_from_checkpoint=auto"), {"adapter/"});
  EXPECT_EQ(contents_of(job.path("run/adapter/mine")), "precious");
  EXPECT_EQ(contents_of(job.path("run/metrics.jsonl")), metrics);
}

// A folder without the mark, as earlier versions left it: it is gone on in, never removed.
TEST(RunFolder, OfAnEarlierSnugIsNotRemoved) {
  const TinyJob job;
  ASSERT_EQ(job.run("run", "max_steps=1").exit_code, 0);
  ASSERT_TRUE(fs::remove(job.path("run/.snug_run.json")));
  expect_refused(job.run("run", kOverwrite), {"earlier Snug"});
  EXPECT_TRUE(has_checkpoint(job.path("run")));
  EXPECT_EQ(job.run("run", "max_steps=1 resume_from_checkpoint=auto").exit_code, 0);
  EXPECT_EQ(job.run("run", kOverwrite).exit_code, 0) << "marked by the run that went on";
}

// A run that was killed while it removed a checkpoint, and one whose number is taken again.
TEST(RunFolder, StartsSweepWhatKilledRunsLeft) {
  const TinyJob job;
  ASSERT_EQ(job.run("run", "max_steps=1").exit_code, 0);
  const std::string leftover = "run/checkpoint-9.snug-tmp-" + std::to_string(::getpid());
  job.folder().write(leftover + "/.snug_staging", "");
  job.folder().write(leftover + "/new/optimizer.safetensors", "left");
  ASSERT_EQ(job.run("run", "max_steps=1 resume_from_checkpoint=auto").exit_code, 0);
  EXPECT_FALSE(fs::exists(job.path(leftover)));
}

TEST(RunFolder, TellsOfStepsWithoutMetrics) {
  const TinyJob job;
  const std::string words = "max_steps=5 resume_from_checkpoint=auto";
  ASSERT_EQ(job.run("run", words).exit_code, 0);
  EXPECT_FALSE(contains(job.run("run", words).err, "has no lines of"));
  const std::string metrics = contents_of(job.path("run/metrics.jsonl"));
  const size_t fourth = metrics.find("{\"step\":4");
  ASSERT_NE(fourth, std::string::npos);
  job.folder().write("run/metrics.jsonl", metrics.substr(fourth));
  EXPECT_TRUE(contains(job.run("run", words).err, "metrics.jsonl has no lines of steps 1 to 3: "));
  job.folder().write("run/metrics.jsonl", metrics.substr(0, fourth));
  EXPECT_TRUE(contains(job.run("run", words).err, "metrics.jsonl has no lines of steps 4 to 5: "));
  fs::remove(job.path("run/metrics.jsonl"));
  EXPECT_TRUE(contains(job.run("run", words).err, "metrics.jsonl has no lines of steps 1 to 5: "));
}

class LostFolder : public ::testing::Test {
 protected:
  // Starts a run, takes its folder away after a few steps and returns what it said.
  BinaryRun lose(const std::function<void()>& take_away) {
    const pid_t process =
        start_snug(job_.words("run", std::string(kSteps) + " save_steps=1 save_total_limit=1"),
                   job_.folder().path());
    EXPECT_TRUE(job_.wait_for_steps("run", 2));
    take_away();
    BinaryRun run;
    run.exit_code = wait_for(process);
    run.err = contents_of(job_.path("err"));
    return run;
  }
  void expect_same_end(const std::string& output) {
    const std::string words = std::string(kSteps) + " resume_from_checkpoint=auto";
    const BinaryRun resumed = job_.run(output, words);
    ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
    EXPECT_TRUE(contains(resumed.err, "resumed from"));
    ASSERT_EQ(job_.run("whole", kSteps).exit_code, 0);
    EXPECT_EQ(job_.adapter(output), job_.adapter("whole"));
  }

  static constexpr const char* kSteps = "max_steps=40";
  TinyJob job_;
};

TEST_F(LostFolder, ARemovedOneSendsTheStateToANewOne) {
  // Until it is empty: the run may be writing a checkpoint into it.
  const BinaryRun run = lose([&] {
    std::error_code error;
    while (fs::exists(job_.path("run"))) fs::remove_all(job_.path("run"), error);
  });
  expect_refused(run, {"was removed or renamed", "run-rescued/checkpoint-",
                       "the metrics of its steps were in the removed folder"});
  EXPECT_FALSE(fs::exists(job_.path("run")));
  for (const char* name : {"recipe.yaml", "plan.json", "run.log"})
    EXPECT_TRUE(fs::exists(job_.path("run-rescued") / name)) << name;
  expect_same_end("run-rescued");
}

TEST_F(LostFolder, ARenamedOneKeepsItsRun) {
  const BinaryRun run = lose([&] { fs::rename(job_.path("run"), job_.path("moved")); });
  expect_refused(run, {"was removed or renamed", "moved/checkpoint-"});
  EXPECT_FALSE(contains(run.err, "in the removed folder"));
  EXPECT_FALSE(fs::exists(job_.path("run")));
  expect_same_end("moved");
}

TEST_F(LostFolder, AnotherRunInItsPlaceIsNotDisturbed) {
  BinaryRun second;
  const BinaryRun run = lose([&] {
    fs::rename(job_.path("run"), job_.path("moved"));
    second = job_.run("run", "max_steps=2 save_steps=1");
  });
  expect_refused(run, {"was removed or renamed", "moved/checkpoint-"});
  ASSERT_EQ(second.exit_code, 0) << second.err;
  size_t checkpoints = 0;
  for (const auto& entry : fs::directory_iterator(job_.path("run")))
    checkpoints += entry.path().filename().string().starts_with("checkpoint-") ? 1 : 0;
  EXPECT_EQ(checkpoints, 2U);
  expect_same_end("moved");
}

}  // namespace
}  // namespace snug::train
