#include "runtime/checkpoint.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>

#include "base/temporary_folder.h"
#include "formats/tensor_index.h"
#include "runtime/checkpoint_folders.h"
#include "runtime/load_weights.h"
#include "runtime/random_weights.h"
#include "tiny_run.h"

namespace snug::runtime {
namespace {

namespace fs = std::filesystem;
using base::DType;
using testing::contains;
using testing::TemporaryFolder;
using testing::TinyOptions;
using testing::TinyRun;
using testing::user_error_of;

TinyOptions tiny(plan::MethodKind method, DType compute = DType::bf16,
                 methods::OptimizerKind optimizer = methods::OptimizerKind::adamw) {
  TinyOptions options;
  options.method = method;
  options.compute = compute;
  options.optimizer = optimizer;
  return options;
}

CheckpointOptions options_for(const TinyRun& run, const fs::path& output_dir) {
  CheckpointOptions options;
  options.output_dir = output_dir;
  options.model.config = run.spec().model;
  if (run.spec().method == plan::MethodKind::lora)
    options.adapter = formats::LoraConfig{.r = run.spec().lora.r,
                                          .alpha = run.spec().lora.alpha,
                                          .dropout = 0,
                                          .use_rslora = false,
                                          .target_modules = run.spec().lora.target_modules,
                                          .base_model = "base"};
  return options;
}

TrainerState state_at(int64_t step) {
  TrainerState state;
  state.step = step;
  state.max_steps = 1 << 20;
  state.rows_consumed = 8 * step;
  state.rows_per_step = 8;
  state.seed = 42;
  state.train_seconds = 0.1 * static_cast<double>(step);
  state.identity.free["backend"] = "reference";
  return state;
}

// Clears a bit of the exponent of every float, so that any bits are a number.
void make_finite(const backends::Buffer& buffer, TinyRun& run) {
  const auto width = static_cast<size_t>(base::size_of(buffer.dtype));
  std::string bytes = run.bytes(buffer);
  if (base::is_float(buffer.dtype))
    for (size_t i = width - 1; i < bytes.size(); i += width)
      bytes[i] = static_cast<char>(bytes[i] & ~0x10);
  run.executor().backend().copy(buffer.data, bytes.data(), buffer.bytes());
}

// Random state of finite numbers, in which each weight is what `prepare` casts from its master, as
// training leaves it.
void fill_state(TinyRun& run, unsigned salt) {
  run.scribble(run.state_names(), salt);
  for (const std::string& name : run.state_names()) make_finite(run.executor().tensor(name), run);
  for (const program::Tensor& tensor : run.job().trainables) {
    const std::string master = methods::master_name(tensor.name);
    const bool has_master = run.executor().has(master);
    fill_normal({run.executor().tensor(has_master ? master : tensor.name), tensor.name}, salt,
                0.02F, run.executor());
  }
  run.executor().run("prepare");
}

class Checkpoint : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
};

TEST_F(Checkpoint, RestoresEveryBitForEveryMethodAndOptimizer) {
  for (const auto method : {plan::MethodKind::full, plan::MethodKind::lora})
    for (const auto& [compute, optimizer] :
         {std::pair{DType::f32, methods::OptimizerKind::adamw},
          std::pair{DType::bf16, methods::OptimizerKind::adamw},
          std::pair{DType::bf16, methods::OptimizerKind::adamw_bf16},
          std::pair{DType::f32, methods::OptimizerKind::adamw_8bit},
          std::pair{DType::bf16, methods::OptimizerKind::adamw_8bit}}) {
      const TinyOptions options = tiny(method, compute, optimizer);
      TinyRun run(options);
      fill_state(run, 17);
      const fs::path saved =
          save_checkpoint(options_for(run, folder_.path()), state_at(7), run.executor());
      EXPECT_EQ(saved, folder_ / "checkpoint-7");

      TinyRun again(options);
      const TrainerState state = restore_checkpoint(saved, run.spec().model, again.executor());
      again.executor().run("prepare");
      EXPECT_EQ(state.step, 7);
      EXPECT_EQ(state.rows_consumed, 56);
      EXPECT_EQ(state.train_seconds, 0.1 * 7);
      for (const std::string& name : run.state_names())
        EXPECT_TRUE(run.bytes(name) == again.bytes(name)) << name;
      EXPECT_EQ(again.floats("inverse_frequencies"), models::inverse_frequencies(run.spec().model));
    }
}

TEST_F(Checkpoint, OfFullTrainingIsAModelFolder) {
  TinyRun run(tiny(plan::MethodKind::full));
  fill_state(run, 5);
  const fs::path saved =
      save_checkpoint(options_for(run, folder_.path()), state_at(1), run.executor());
  const models::ModelSource model = models::find_model(saved.string());
  TinyRun frozen(tiny(plan::MethodKind::lora));
  load_weights(saved, model.config, frozen.executor());
  for (const models::Weight& weight : models::weights_of(model.config))
    EXPECT_TRUE(run.bytes(weight.name) == frozen.bytes(weight.name)) << weight.name;
}

TEST_F(Checkpoint, SavingTheSameStepAgainReplacesIt) {
  TinyRun run(tiny(plan::MethodKind::lora));
  fill_state(run, 5);
  save_checkpoint(options_for(run, folder_.path()), state_at(1), run.executor());
  fill_state(run, 6);
  const fs::path saved =
      save_checkpoint(options_for(run, folder_.path()), state_at(1), run.executor());
  EXPECT_EQ(folder_.count(), 1U);
  TinyRun again(tiny(plan::MethodKind::lora));
  restore_checkpoint(saved, run.spec().model, again.executor());
  again.executor().run("prepare");
  for (const std::string& name : run.state_names())
    EXPECT_TRUE(run.bytes(name) == again.bytes(name)) << name;
}

TEST_F(Checkpoint, LimitCountsCompleteOnes) {
  TinyRun run(tiny(plan::MethodKind::lora));
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

// Lowers the largest file a process may write for as long as it lives: a full disk, as the calls
// see it.
class SmallDisk {
 public:
  explicit SmallDisk(rlim_t bytes) {
    handler_ = ::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~SmallDisk() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, handler_);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int) = nullptr;
};

TEST_F(Checkpoint, AFullDiskLeavesOlderOnesIntact) {
  TinyRun run(tiny(plan::MethodKind::full));
  fill_state(run, 5);
  CheckpointOptions options = options_for(run, folder_.path());
  options.save_total_limit = 1;
  save_checkpoint(options, state_at(1), run.executor());
  std::string text;
  {
    // The model (8 kB) fits, the optimizer's state does not.
    const SmallDisk disk(16'000);
    text = user_error_of([&] { save_checkpoint(options, state_at(2), run.executor()); });
  }
  EXPECT_TRUE(contains(text, "optimizer.safetensors"));
  EXPECT_EQ(folder_.count(), 1U) << "nothing is half-written";
  TinyRun again(tiny(plan::MethodKind::full));
  EXPECT_EQ(restore_checkpoint(folder_ / "checkpoint-1", run.spec().model, again.executor()).step,
            1);
}

TEST_F(Checkpoint, WeightsThatAreNotFiniteAreRefusedAndOlderOnesStay) {
  for (const auto method : {plan::MethodKind::full, plan::MethodKind::lora}) {
    const TemporaryFolder folder;
    TinyRun run(tiny(method));
    fill_state(run, 5);
    CheckpointOptions options = options_for(run, folder.path());
    options.save_total_limit = 1;
    save_checkpoint(options, state_at(1), run.executor());
    const std::string& name = run.job().trainables.back().name;
    run.set(run.executor().tensor(methods::master_name(name)), 0, INFINITY);
    run.executor().run("prepare");
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
  const TinyOptions options = tiny(plan::MethodKind::lora);
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
    again.executor().run("prepare");
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

// What a damaged or foreign checkpoint says, after checking that it changed nothing.
class CheckpointErrors : public Checkpoint {
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
};

TEST_F(CheckpointErrors, TruncatedAndMissingFiles) {
  const TinyOptions options = tiny(plan::MethodKind::lora);
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
  const TinyOptions options = tiny(plan::MethodKind::lora);
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
    run.executor().run("prepare");
    std::string bits = to_json(state);
    for (const std::string& name : run.state_names()) bits += run.bytes(name);
    return bits;
  }
};

TEST_F(FlippedBits, AreFoundOrChangeNothing) {
  for (const TinyOptions& options :
       {tiny(plan::MethodKind::lora), tiny(plan::MethodKind::full),
        tiny(plan::MethodKind::full, DType::bf16, methods::OptimizerKind::adamw_8bit)}) {
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
  const TinyOptions options = tiny(plan::MethodKind::full);
  const fs::path saved = save(options);
  TinyRun run(options);
  fill_state(run, 6);
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
  const TinyOptions options = tiny(plan::MethodKind::lora);
  TinyRun run(options);
  fill_state(run, 5);
  const std::string moment = methods::second_moment_name(run.job().trainables.front().name);
  run.set(run.executor().tensor(moment), 1, INFINITY);
  const std::string text = user_error_of(
      [&] { save_checkpoint(options_for(run, folder_.path()), state_at(1), run.executor()); });
  EXPECT_TRUE(contains(text, "tensor '" + moment + "' is not finite at [0, 1]"));
  EXPECT_EQ(folder_.count(), 0U);
}

TEST_F(CheckpointErrors, AnotherMethod) {
  const fs::path lora = save(tiny(plan::MethodKind::lora));
  EXPECT_TRUE(contains(message(lora, tiny(plan::MethodKind::full)),
                       "made with method=lora, and this job has method=full"));
  const fs::path full = save(tiny(plan::MethodKind::full));
  EXPECT_TRUE(contains(message(full, tiny(plan::MethodKind::lora)), "method=full"));
}

TEST_F(CheckpointErrors, AnotherOptimizer) {
  const TinyOptions with_master = tiny(plan::MethodKind::lora);
  const TinyOptions without =
      tiny(plan::MethodKind::lora, DType::bf16, methods::OptimizerKind::adamw_bf16);
  EXPECT_TRUE(contains(message(save(with_master), without), "optim"));
  EXPECT_TRUE(contains(message(save(without), with_master), "optim"));
}

TEST_F(CheckpointErrors, OtherModulesOrRank) {
  TinyOptions few = tiny(plan::MethodKind::lora);
  few.target_modules = {"q_proj"};
  const TinyOptions all = tiny(plan::MethodKind::lora);
  EXPECT_TRUE(contains(message(save(few), all), "target_modules"));
  EXPECT_TRUE(contains(message(save(all), few), "target_modules"));
  TinyOptions wide = all;
  wide.lora_r = 8;
  EXPECT_TRUE(contains(message(save(wide), all), "expected [4, 12]"));
}

TEST_F(CheckpointErrors, OfAnotherTrainer) {
  folder_.write("checkpoint-9/trainer_state.json", R"({"global_step": 9, "epoch": 1.0})");
  EXPECT_TRUE(contains(message(folder_ / "checkpoint-9", tiny(plan::MethodKind::lora)),
                       "not a checkpoint of Snug"));
}

}  // namespace
}  // namespace snug::runtime
