// Checkpoints of several ranks: any number restores what any number wrote, every bit; a failure of
// one rank is one of all, and what was there before stays.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <mutex>

#include "base/damaged_file.h"
#include "base/temporary_folder.h"
#include "formats/folder/manifest.h"
#include "formats/folder/safetensors_file.h"
#include "rank_runs.h"
#include "runtime/process/ranks.h"
#include "runtime/saving/checkpoint.h"
#include "runtime/saving/checkpoint_folders.h"

namespace snug::runtime {
namespace {

namespace fs = std::filesystem;
using program::DType;
using program::ProgramName;
using testing::contains;
using testing::expect_no_errors;
using testing::fill_saved;
using testing::full_shard;
using testing::on_ranks;
using testing::options_for;
using testing::shard_state;
using testing::state_at;
using testing::TemporaryFolder;
using testing::TinyOptions;
using testing::TinyRun;

std::mutex expectations;

TinyOptions small(formats::Method method, methods::OptimizerKind optimizer) {
  TinyOptions options = testing::tiny(method, DType::bf16, optimizer);
  options.model.hidden_size = 36;
  options.model.head_dim = 12;
  options.model.vocab_size = 1000;
  options.threads = 1;
  return options;
}

TinyOptions small() { return small(formats::Method::full, methods::OptimizerKind::adamw); }

void save(const TinyOptions& options, const passes::ShardingOptions& ranks,
          const fs::path& output_dir, int64_t step) {
  expect_no_errors(on_ranks(options, ranks, [&](TinyRun& run, int) {
    fill_saved(run, step);
    save_checkpoint(options_for(run, output_dir), state_at(step), run.executor());
  }));
}

void expect_restored(const TinyOptions& options, const passes::ShardingOptions& ranks,
                     const fs::path& checkpoint, int64_t step) {
  TinyRun expected(options);
  fill_saved(expected, step);
  expect_no_errors(on_ranks(options, ranks, [&](TinyRun& run, int) {
    const TrainerState state = restore_checkpoint(checkpoint, options.model, run.executor());
    EXPECT_EQ(state.step, step);
    const std::lock_guard lock(expectations);
    testing::for_each_lasting(run, run, ProgramName::restore,
                              [&](const program::Tensor& tensor, const backends::Buffer& buffer) {
                                if (tensor.name == "inverse_frequencies") return;
                                testing::expect_part_of(expected, run, tensor, buffer);
                              });
  }));
}

TEST(RanksCheckpoint, AnyNumberRestoresWhatAnyNumberWrote) {
  for (const TinyOptions& options :
       {small(), small(formats::Method::lora, methods::OptimizerKind::adamw),
        small(formats::Method::full, methods::OptimizerKind::adamw_8bit)})
    for (const int writers : {1, 2, 3}) {
      const TemporaryFolder folder;
      save(options, full_shard(writers), folder.path(), 7);
      for (const int readers : {1, 2, 4}) {
        SCOPED_TRACE(fmt::format("{} wrote, {} read", writers, readers));
        expect_restored(options, full_shard(readers), folder / "checkpoint-7", 7);
      }
    }
}

TEST(RanksCheckpoint, OfPaddedWeightsIsThatOfOthers) {
  const TinyOptions options =
      small(formats::Method::full, methods::OptimizerKind::adamw_bf16);  // no master
  const TemporaryFolder folder;
  save(options, shard_state(3), folder.path(), 2);
  expect_restored(options, shard_state(2), folder / "checkpoint-2", 2);
  expect_restored(options, full_shard(2), folder / "checkpoint-2", 2);
  expect_restored(options, {}, folder / "checkpoint-2", 2);
}

TEST(RanksCheckpoint, EachElementIsInOneFile) {
  const TemporaryFolder folder;
  save(small(), full_shard(3), folder.path(), 1);
  const fs::path checkpoint = folder / "checkpoint-1";
  const formats::Manifest manifest =
      formats::parse_manifest(base::read_text_file(checkpoint / "manifest.json"), "manifest.json");
  EXPECT_EQ(manifest.ranks, 3);
  int64_t parts = 0;
  for (const auto& [name, tensor] : manifest.tensors)
    parts += static_cast<int64_t>(tensor.parts.size());
  int64_t in_files = 0;
  for (int rank = 0; rank < 3; ++rank) {
    const formats::SafetensorsFile file(checkpoint /
                                        (formats::rank_stem(rank, 3) + ".safetensors"));
    in_files += static_cast<int64_t>(file.tensors().size());
  }
  EXPECT_EQ(parts, in_files);
  EXPECT_EQ(find_latest_checkpoint(folder.path()), checkpoint);
}

TEST(RanksCheckpoint, AFailureOfOneRankIsOneOfAllAndOlderOnesStay) {
  const TemporaryFolder folder;
  save(small(), full_shard(3), folder.path(), 1);
  const auto errors = on_ranks(small(), full_shard(3), [&](TinyRun& run, int rank) {
    fill_saved(run, 2);
    if (rank == 1)
      run.set(run.executor().tensor(program::first_moment_name("model.embed_tokens.weight")), 5,
              INFINITY);
    CheckpointOptions options = options_for(run, folder.path());
    options.save_total_limit = 1;
    save_checkpoint(options, state_at(2), run.executor());
  });
  for (const std::string& error : errors)
    EXPECT_TRUE(contains(error, "moment1.model.embed_tokens.weight' is not finite"));
  // The same on all, so that one of them can say it.
  EXPECT_TRUE(errors[0].starts_with("rank 1: ")) << errors[0];
  for (const std::string& error : errors) EXPECT_EQ(error, errors[0]);
  EXPECT_EQ(folder.count(), 1U) << "nothing is half-written";
  expect_restored(small(), full_shard(2), folder / "checkpoint-1", 1);
}

// What `work` ends with on each of three ranks: the exit code and the words.
std::vector<std::string> endings_of_all(const std::function<void(int)>& work) {
  std::vector<std::string> endings(3);
  comm::errors_of_ranks(3, {}, [&](comm::Communicator& communicator) {
    const comm::Mesh mesh{.all = &communicator};
    try {
      on_all_ranks(mesh, [&] { work(communicator.rank()); });
    } catch (const base::UserError& error) {
      endings[static_cast<size_t>(communicator.rank())] =
          fmt::format("{} {}", error.exit_code(), error.what());
    }
  });
  return endings;
}

TEST(OnAllRanks, AllEndWithTheSameWordsAndExitCode) {
  const auto expect_all = [](const std::function<void(int)>& work, const std::string& expected) {
    for (const std::string& ending : endings_of_all(work)) EXPECT_EQ(ending, expected);
  };
  expect_all([](int) {}, "");
  expect_all([](int) { throw base::UserError("it does not fit", {}, 3); }, "3 it does not fit");
  expect_all(
      [](int rank) {
        if (rank == 2) throw base::UserError("no file");
      },
      "2 rank 2: no file");
  expect_all(
      [](int rank) {
        if (rank > 0) throw base::UserError("no file");
      },
      "2 ranks 1 and 2: no file");
  expect_all(
      [](int rank) {
        if (rank == 1) throw std::bad_alloc();
        if (rank == 2) throw base::UserError("no file");
      },
      "1 rank 1: the system has no more memory; plan for less with device_memory=; rank 2: no "
      "file");
}

void flip(const fs::path& path, int64_t at) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(at);
  const char byte = static_cast<char>(file.get());
  file.seekp(at);
  file.put(static_cast<char>(byte ^ 1));
}

const char* run_file(const TinyOptions& options) {
  return options.method == formats::Method::full ? "model.safetensors"
                                                 : "adapter_model.safetensors";
}

// The result is in whole files, with the same bytes from any number of ranks; nobody resumes from
// it, and every byte of it is verified before it becomes a run's result.
TEST(RanksCheckpoint, OfTheModelAloneIsTheResult) {
  for (const TinyOptions& options :
       {small(), small(formats::Method::lora, methods::OptimizerKind::adamw)}) {
    const TemporaryFolder folder;
    std::vector<std::string> files;
    for (const int ranks : {1, 3}) {
      const fs::path output = folder / std::to_string(ranks);
      fs::create_directory(output);
      TrainerState state = state_at(7);
      state.only_model = true;
      expect_no_errors(on_ranks(options, full_shard(ranks), [&](TinyRun& run, int) {
        fill_saved(run, 7);
        save_checkpoint(options_for(run, output), state, run.executor());
        copy_result(output / "checkpoint-7", output / "result", run.executor());
      }));
      const std::string name = run_file(options);
      files.push_back(base::read_text_file(output / "checkpoint-7" / name));
      EXPECT_EQ(base::read_text_file(output / "result" / name), files.back());
      EXPECT_FALSE(fs::exists(output / "checkpoint-7" / "optimizer.safetensors"));
      EXPECT_FALSE(fs::exists(output / "result" / "trainer_state.json"));
      flip(output / "checkpoint-7" / name, std::ssize(files.back()) / 2);
      for (const std::string& error : on_ranks(options, full_shard(ranks), [&](TinyRun&run, int) {
             copy_result(output / "checkpoint-7", output / "result", run.executor());
           }))
        EXPECT_TRUE(contains(error, "the file is damaged")) << error;
      EXPECT_EQ(base::read_text_file(output / "result" / name), files.back());
      for (const std::string& error : on_ranks(options, full_shard(ranks), [&](TinyRun&run, int) {
             restore_checkpoint(output / "checkpoint-7", options.model, run.executor());
           }))
        EXPECT_TRUE(contains(error, "holds the model alone")) << error;
    }
    EXPECT_EQ(files[0], files[1]) << "one rank and three";
  }
}

TEST(RanksCheckpoint, OlderOnesBeyondTheLimitGo) {
  const TemporaryFolder folder;
  expect_no_errors(on_ranks(small(), full_shard(2), [&](TinyRun& run, int) {
    fill_saved(run, 1);
    CheckpointOptions options = options_for(run, folder.path());
    options.save_total_limit = 2;
    for (const int64_t step : {1, 2, 3}) save_checkpoint(options, state_at(step), run.executor());
  }));
  EXPECT_EQ(folder.count(), 2U);
  EXPECT_FALSE(fs::exists(folder / "checkpoint-1"));
}

// Wherever a byte is changed: in parts that one rank reads alone, headers and the manifest.
TEST(RanksCheckpoint, EveryByteIsVerified) {
  const TemporaryFolder folder;
  save(small(), full_shard(2), folder.path(), 1);
  const fs::path checkpoint = folder / "checkpoint-1";
  for (const std::string name :
       {"rank-00000-of-00002.safetensors", "rank-00001-of-00002.safetensors", "manifest.json"}) {
    const auto bytes = static_cast<int64_t>(fs::file_size(checkpoint / name));
    for (const int64_t at : {bytes / 9, bytes / 2, bytes - 3}) {
      flip(checkpoint / name, at);
      for (const int ranks : {1, 3}) {
        const auto errors = on_ranks(small(), full_shard(ranks), [&](TinyRun& run, int) {
          try {
            restore_checkpoint(checkpoint, small().model, run.executor());
          } catch (const base::DamagedFile&) {
            throw std::runtime_error("damaged");
          }
        });
        for (const std::string& error : errors) EXPECT_EQ(error, "damaged") << name << " at " << at;
      }
      flip(checkpoint / name, at);
    }
  }
  expect_restored(small(), full_shard(3), checkpoint, 1);
}

[[noreturn]] void save_for_ever(const fs::path& output_dir, int64_t first) {
  on_ranks(small(), full_shard(2), [&](TinyRun& run, int) {
    CheckpointOptions options = options_for(run, output_dir);
    options.save_total_limit = 2;
    for (int64_t step = first;; ++step) {
      fill_saved(run, step);
      save_checkpoint(options, state_at(step), run.executor());
    }
  });
  ::_exit(1);
}

TEST(RanksCheckpoint, SurvivesAKillAtAnyInstant) {
  const TemporaryFolder folder;
  int64_t next = 1;
  for (int round = 0; round < 3; ++round) {
    const pid_t child = ::fork();
    if (child == 0) save_for_ever(folder.path(), next);
    int status = 0;
    while (!fs::exists(checkpoint_path(folder.path(), next + 1))) {
      ASSERT_EQ(::waitpid(child, &status, WNOHANG), 0) << "it ended by itself";
      ::usleep(1000);
    }
    ::usleep(static_cast<useconds_t>(5000 * round));
    ::kill(child, SIGKILL);
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
    const auto latest = find_latest_checkpoint(folder.path());
    ASSERT_TRUE(latest.has_value());
    const int64_t step = *step_of(latest->filename().string());
    expect_restored(small(), full_shard(3), *latest, step);
    next = step + 1;
  }
}

}  // namespace
}  // namespace snug::runtime
