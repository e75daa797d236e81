// Checkpoints that are damaged, or of another job.
#include <gtest/gtest.h>

#include <cmath>

#include "base/temporary_folder.h"
#include "program/ir/tensor_names.h"
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

// What a damaged or foreign checkpoint says, after checking that it changed nothing.
class CheckpointErrors : public ::testing::Test {
 protected:
  fs::path save(const TinyOptions& options) {
    TinyRun run(options);
    fill_state(run, 5);
    return save_checkpoint(options_for(run, folder_.path()), state_at(1), run.executor());
  }
  static std::string message(const fs::path& saved, const TinyOptions& options) {
    TinyRun run(options);
    run.scribble(run.state_names(), 99);
    std::string before;
    for (const std::string& name : run.state_names()) before += run.bytes(name);
    const std::string text =
        user_error_of([&] { restore_checkpoint(saved, run.spec().model, run.executor()); });
    std::string after;
    for (const std::string& name : run.state_names()) after += run.bytes(name);
    EXPECT_TRUE(before == after) << "something was restored";
    return text;
  }
  TemporaryFolder folder_;
};

TEST_F(CheckpointErrors, TruncatedAndMissingFiles) {
  const TinyOptions options = tiny(formats::Method::lora);
  const fs::path saved = save(options);
  const fs::path optimizer = saved / "optimizer.safetensors";
  fs::resize_file(optimizer, fs::file_size(optimizer) - 100);
  EXPECT_TRUE(contains(message(saved, options), optimizer.string() + ": the file has "));
  fs::remove(optimizer);
  EXPECT_TRUE(contains(message(saved, options), optimizer.string() + ": the file is missing"));
  fs::remove(saved / "trainer_state.json");
  EXPECT_TRUE(contains(message(saved, options), "has no trainer_state.json"));
  EXPECT_TRUE(contains(message(saved / "nowhere", options), "no such checkpoint"));
}

TEST_F(CheckpointErrors, AHeaderThatLies) {
  const TinyOptions options = tiny(formats::Method::lora);
  const fs::path saved = save(options);
  std::string text = base::read_text_file(saved / "optimizer.safetensors");
  text[4] = '\x7f';
  base::write_file_atomically(saved / "optimizer.safetensors", text);
  EXPECT_TRUE(contains(message(saved, options), "optimizer.safetensors: the bytes from 0 on"));
}

// What restoring a checkpoint in which one bit is another ends with.
class FlippedBits : public CheckpointErrors {
 protected:
  // Bits all over the file, more of them where it begins.
  static std::vector<int64_t> positions(int64_t bytes) {
    std::vector<int64_t> result;
    for (int64_t i = 0; i < 60; ++i) result.push_back(i * (8 * bytes - 1) / 59);
    for (int64_t i = 0; i < 20; ++i) result.push_back((i * 37) % (8 * bytes));
    return result;
  }
  static void flip(const fs::path& path, int64_t bit) {
    auto file = base::File::open_for_update(path);
    char byte = 0;
    file.read_at(bit / 8, &byte, 1);
    byte = static_cast<char>(byte ^ (1 << bit % 8));
    file.write_at(bit / 8, &byte, 1);
  }
  static std::string state_of(const fs::path& saved, TinyRun& run) {
    const TrainerState state = restore_checkpoint(saved, run.spec().model, run.executor());
    run.executor().run(program::ProgramName::prepare);
    std::string bits = to_json(state);
    for (const std::string& name : run.state_names()) bits += run.bytes(name);
    return bits;
  }
};

TEST_F(FlippedBits, AreFoundOrChangeNothing) {
  for (const TinyOptions& options :
       {tiny(formats::Method::lora), tiny(formats::Method::full),
        tiny(formats::Method::full, DType::bf16, methods::OptimizerKind::adamw_8bit)}) {
    const fs::path saved = save(options);
    folder_.write("checkpoint-1/notes.txt", "not of the checkpoint");
    TinyRun run(options);
    const std::string whole = state_of(saved, run);
    int found = 0;
    int silent = 0;
    for (const auto& entry : fs::directory_iterator(saved))
      for (const int64_t bit : positions(static_cast<int64_t>(entry.file_size()))) {
        flip(entry.path(), bit);
        try {
          if (state_of(saved, run) != whole) ++silent;
        } catch (const base::UserError& error) {
          ++found;
          EXPECT_TRUE(contains(error.what(), entry.path().string())) << bit;
        }
        flip(entry.path(), bit);
      }
    EXPECT_EQ(silent, 0);
    EXPECT_GT(found, 300);
    EXPECT_EQ(state_of(saved, run), whole) << "what was damaged in between leaves no trace";
  }
}

// A file of the same bytes and form, of another save.
TEST_F(CheckpointErrors, FilesOfTwoCheckpoints) {
  const TinyOptions options = tiny(formats::Method::full);
  const fs::path saved = save(options);
  TinyRun run(options);
  fill_state(run, 6);
  fs::create_directory(folder_ / "other");
  const fs::path other =
      save_checkpoint(options_for(run, folder_ / "other"), state_at(1), run.executor());
  for (const char* name : {"model.safetensors", "optimizer.safetensors", "checksums.json"}) {
    fs::copy_file(saved / name, folder_ / "kept");
    fs::copy_file(other / name, saved / name, fs::copy_options::overwrite_existing);
    const std::string text =
        user_error_of([&] { restore_checkpoint(saved, run.spec().model, run.executor()); });
    EXPECT_TRUE(contains(text, (saved / name).string()));
    fs::rename(folder_ / "kept", saved / name);
  }
  EXPECT_NO_THROW(restore_checkpoint(saved, run.spec().model, run.executor()));
}

TEST_F(CheckpointErrors, MomentsThatAreNotFiniteAreNotSaved) {
  const TinyOptions options = tiny(formats::Method::lora);
  TinyRun run(options);
  fill_state(run, 5);
  const std::string moment = program::second_moment_name(run.job().trainables.front().name);
  run.set(run.executor().tensor(moment), 1, INFINITY);
  const std::string text = user_error_of(
      [&] { save_checkpoint(options_for(run, folder_.path()), state_at(1), run.executor()); });
  EXPECT_TRUE(contains(text, "tensor '" + moment + "' is not finite at [0, 1]"));
  EXPECT_EQ(folder_.count(), 0U);
}

TEST_F(CheckpointErrors, AnotherMethod) {
  const fs::path lora = save(tiny(formats::Method::lora));
  EXPECT_TRUE(contains(message(lora, tiny(formats::Method::full)),
                       "made with method=lora, and this job has method=full"));
  const fs::path full = save(tiny(formats::Method::full));
  EXPECT_TRUE(contains(message(full, tiny(formats::Method::lora)), "method=full"));
}

TEST_F(CheckpointErrors, AnotherOptimizer) {
  const TinyOptions with_master = tiny(formats::Method::lora);
  const TinyOptions without =
      tiny(formats::Method::lora, DType::bf16, methods::OptimizerKind::adamw_bf16);
  EXPECT_TRUE(contains(message(save(with_master), without), "optim"));
  EXPECT_TRUE(contains(message(save(without), with_master), "optim"));
}

TEST_F(CheckpointErrors, OtherModulesOrRank) {
  TinyOptions few = tiny(formats::Method::lora);
  few.target_modules = {"q_proj"};
  const TinyOptions all = tiny(formats::Method::lora);
  EXPECT_TRUE(contains(message(save(few), all), "target_modules"));
  EXPECT_TRUE(contains(message(save(all), few), "target_modules"));
  TinyOptions wide = all;
  wide.lora_r = 8;
  EXPECT_TRUE(contains(message(save(wide), all), "expected [4, 12]"));
}

TEST_F(CheckpointErrors, OtherFrozenModules) {
  const TinyOptions all = tiny(formats::Method::full);
  TinyOptions some = all;
  some.frozen = {"model.norm.weight"};
  const std::string surplus = message(save(all), some);
  EXPECT_TRUE(contains(surplus, "holds 'm"));
  EXPECT_TRUE(contains(surplus, "model.norm.weight', which this job does not keep"));
  EXPECT_TRUE(contains(surplus, "freeze_modules"));
  const std::string missing = message(save(some), all);
  EXPECT_TRUE(contains(missing, "model.norm.weight', which this job keeps"));
  EXPECT_TRUE(contains(missing, "trainable_modules"));
}

TEST_F(CheckpointErrors, OfAnotherTrainer) {
  folder_.write("checkpoint-9/trainer_state.json", R"({"global_step": 9, "epoch": 1.0})");
  EXPECT_TRUE(contains(message(folder_ / "checkpoint-9", tiny(formats::Method::lora)),
                       "not a checkpoint of Snug"));
}

}  // namespace
}  // namespace snug::runtime
