#include "runtime/saving/checkpoint.h"
#include "program/ir/tensor_names.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <map>

#include "base/small_disk.h"
#include "base/temporary_folder.h"
#include "formats/folder/tensor_index.h"
#include "runtime/loading/load_weights.h"
#include "runtime/saving/checkpoint_folders.h"
#include "tiny_checkpoint.h"

namespace snug::runtime {
namespace {

namespace fs = std::filesystem;
using base::DType;
using testing::contains;
using testing::fill_state;
using testing::options_for;
using testing::state_at;
using testing::TemporaryFolder;
using testing::tiny;
using testing::TinyOptions;
using testing::TinyRun;
using testing::user_error_of;

class Checkpoint : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
};

TEST_F(Checkpoint, RestoresEveryBitForEveryMethodAndOptimizer) {
  for (const auto method : {formats::Method::full, formats::Method::lora})
    for (const auto& [compute, optimizer] :
         {std::pair{DType::f32, methods::OptimizerKind::adamw},
          std::pair{DType::bf16, methods::OptimizerKind::adamw},
          std::pair{DType::bf16, methods::OptimizerKind::adamw_bf16},
          std::pair{DType::f32, methods::OptimizerKind::adamw_8bit},
          std::pair{DType::bf16, methods::OptimizerKind::adamw_8bit},
          std::pair{DType::bf16, methods::OptimizerKind::lion},
          std::pair{DType::bf16, methods::OptimizerKind::muon},
          std::pair{DType::f32, methods::OptimizerKind::adafactor},
          std::pair{DType::bf16, methods::OptimizerKind::adafactor}}) {
      const TinyOptions options = tiny(method, compute, optimizer);
      TinyRun run(options);
      fill_state(run, 17);
      const fs::path saved =
          save_checkpoint(options_for(run, folder_.path()), state_at(7), run.executor());
      EXPECT_EQ(saved, folder_ / "checkpoint-7");

      TinyRun again(options);
      const TrainerState state = restore_checkpoint(saved, run.spec().model, again.executor());
      again.executor().run(program::ProgramName::prepare);
      EXPECT_EQ(state.step, 7);
      EXPECT_EQ(state.rows_consumed, 56);
      EXPECT_EQ(state.train_seconds, 0.1 * 7);
      for (const std::string& name : run.state_names())
        EXPECT_TRUE(run.bytes(name) == again.bytes(name)) << name;
      EXPECT_EQ(again.floats("inverse_frequencies"), models::inverse_frequencies(run.spec().model));
    }
}

// All weights are in the model's files, and those that are frozen as they were loaded.
TEST_F(Checkpoint, HoldsWhatIsFrozenWithTheBitsThatWereLoaded) {
  for (const auto& [compute, optimizer] :
       {std::pair{DType::f32, methods::OptimizerKind::adamw},
        std::pair{DType::bf16, methods::OptimizerKind::adamw},
        std::pair{DType::bf16, methods::OptimizerKind::adamw_bf16}}) {
    TinyOptions options = tiny(formats::Method::full, compute, optimizer);
    options.model = testing::golden_config("basic");
    options.frozen = {"model.embed_tokens.weight", "model.layers.0.self_attn.q_proj.weight",
                      "model.norm.weight"};
    TinyRun run(options);
    load_weights(testing::golden("basic") / "model", options.model, run.executor());
    run.executor().run(program::ProgramName::prepare);
    std::map<std::string, std::string> loaded;
    for (const std::string& name : options.frozen) loaded[name] = run.bytes(name);
    fill_state(run, 17);
    const fs::path saved =
        save_checkpoint(options_for(run, folder_.path()), state_at(7), run.executor());

    const formats::TensorIndex files(saved, "model");
    EXPECT_EQ(files.tensors().size(), models::weights_of(options.model).size());
    TinyRun again(options);
    restore_checkpoint(saved, options.model, again.executor());
    again.executor().run(program::ProgramName::prepare);
    for (const models::Weight& weight : models::weights_of(options.model))
      EXPECT_TRUE(run.bytes(weight.name) == again.bytes(weight.name)) << weight.name;
    for (const auto& [name, bytes] : loaded) {
      EXPECT_TRUE(again.bytes(name) == bytes) << name;
      EXPECT_FALSE(again.executor().has(program::first_moment_name(name))) << name;
      EXPECT_FALSE(again.executor().has(program::master_name(name))) << name;
    }
    for (const std::string& name : run.state_names())
      EXPECT_TRUE(run.bytes(name) == again.bytes(name)) << name;
  }
}

TEST_F(Checkpoint, OfFullTrainingIsAModelFolder) {
  TinyRun run(tiny(formats::Method::full));
  fill_state(run, 5);
  const fs::path saved =
      save_checkpoint(options_for(run, folder_.path()), state_at(1), run.executor());
  const models::ModelSource model = models::find_model(saved.string());
  TinyOptions reads = tiny(formats::Method::lora);
  reads.model = model.config;
  TinyRun frozen(reads);
  load_weights(saved, model.config, frozen.executor());
  for (const models::Weight& weight : models::weights_of(model.config))
    EXPECT_TRUE(run.bytes(weight.name) == frozen.bytes(weight.name)) << weight.name;
}

TEST_F(Checkpoint, SavingTheSameStepAgainReplacesIt) {
  TinyRun run(tiny(formats::Method::lora));
  fill_state(run, 5);
  save_checkpoint(options_for(run, folder_.path()), state_at(1), run.executor());
  fill_state(run, 6);
  const fs::path saved =
      save_checkpoint(options_for(run, folder_.path()), state_at(1), run.executor());
  EXPECT_EQ(folder_.count(), 1U);
  TinyRun again(tiny(formats::Method::lora));
  restore_checkpoint(saved, run.spec().model, again.executor());
  again.executor().run(program::ProgramName::prepare);
  for (const std::string& name : run.state_names())
    EXPECT_TRUE(run.bytes(name) == again.bytes(name)) << name;
}

TEST_F(Checkpoint, LimitCountsCompleteOnes) {
  TinyRun run(tiny(formats::Method::lora));
  fill_state(run, 5);
  CheckpointOptions options = options_for(run, folder_.path());
  options.save_total_limit = 2;
  fs::create_directory(folder_ / "checkpoint-3");  // a torn one of another program
  for (const int64_t step : {1, 2, 4, 5}) save_checkpoint(options, state_at(step), run.executor());
  EXPECT_FALSE(fs::exists(folder_ / "checkpoint-2"));
  EXPECT_TRUE(fs::exists(folder_ / "checkpoint-3"));
  EXPECT_TRUE(fs::exists(folder_ / "checkpoint-4"));
  EXPECT_EQ(find_latest_checkpoint(folder_.path()), folder_ / "checkpoint-5");
}

TEST_F(Checkpoint, AFullDiskLeavesOlderOnesIntact) {
  TinyRun run(tiny(formats::Method::full));
  fill_state(run, 5);
  CheckpointOptions options = options_for(run, folder_.path());
  options.save_total_limit = 1;
  save_checkpoint(options, state_at(1), run.executor());
  std::string text;
  {
    // The model (8 kB) fits, the optimizer's state does not.
    const testing::SmallDisk disk(16'000);
    text = user_error_of([&] { save_checkpoint(options, state_at(2), run.executor()); });
  }
  EXPECT_TRUE(contains(text, "optimizer.safetensors"));
  EXPECT_EQ(folder_.count(), 1U) << "nothing is half-written";
  TinyRun again(tiny(formats::Method::full));
  EXPECT_EQ(restore_checkpoint(folder_ / "checkpoint-1", run.spec().model, again.executor()).step,
            1);
}

TEST_F(Checkpoint, WeightsThatAreNotFiniteAreRefusedAndOlderOnesStay) {
  for (const auto method : {formats::Method::full, formats::Method::lora}) {
    const TemporaryFolder folder;
    TinyRun run(tiny(method));
    fill_state(run, 5);
    CheckpointOptions options = options_for(run, folder.path());
    options.save_total_limit = 1;
    save_checkpoint(options, state_at(1), run.executor());
    const std::string& name = run.job().trainables.back().name;
    run.set(run.executor().tensor(program::master_name(name)), 0, INFINITY);
    run.executor().run(program::ProgramName::prepare);
    const std::string text =
        user_error_of([&] { save_checkpoint(options, state_at(2), run.executor()); });
    EXPECT_TRUE(contains(text, name));
    EXPECT_TRUE(contains(text, "not finite"));
    EXPECT_EQ(find_latest_checkpoint(folder.path()), folder / "checkpoint-1");
    EXPECT_EQ(folder.count(), 1U) << "nothing is half-written";
  }
}

// Saves the steps from `first` on until it is killed; each step has a state of its own.
[[noreturn]] void save_for_ever(const TinyOptions& options, const fs::path& output_dir,
                                int64_t first) {
  TinyRun run(options);
  CheckpointOptions checkpoint = options_for(run, output_dir);
  checkpoint.save_total_limit = 2;
  for (int64_t step = first;; ++step) {
    fill_state(run, static_cast<unsigned>(step));
    save_checkpoint(checkpoint, state_at(step), run.executor());
  }
}

TEST_F(Checkpoint, SurvivesAKillAtAnyInstant) {
  const TinyOptions options = tiny(formats::Method::lora);
  int64_t next = 1;
  for (int round = 0; round < 5; ++round) {
    const pid_t child = ::fork();
    if (child == 0) save_for_ever(options, folder_.path(), next);
    while (!fs::exists(checkpoint_path(folder_.path(), next + 2))) ::usleep(100);
    ::usleep(static_cast<useconds_t>(3000 * round));
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));

    const auto latest = find_latest_checkpoint(folder_.path());
    ASSERT_TRUE(latest.has_value());
    TinyRun again(options);
    const int64_t step = restore_checkpoint(*latest, again.spec().model, again.executor()).step;
    EXPECT_GE(step, next + 2);
    again.executor().run(program::ProgramName::prepare);
    TinyRun expected(options);
    fill_state(expected, static_cast<unsigned>(step));
    for (const std::string& name : expected.state_names())
      ASSERT_TRUE(expected.bytes(name) == again.bytes(name)) << name << " at step " << step;
    next = step + 1;
  }
  // The next save clears away what the killed processes left.
  TinyRun run(options);
  fill_state(run, 1);
  CheckpointOptions checkpoint = options_for(run, folder_.path());
  checkpoint.save_total_limit = 2;
  save_checkpoint(checkpoint, state_at(next), run.executor());
  EXPECT_EQ(folder_.count(), 2U);
}

}  // namespace
}  // namespace snug::runtime
