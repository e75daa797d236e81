#include "runtime/saving/checkpoint_folders.h"

#include <gtest/gtest.h>

#include <array>

#include "base/temporary_folder.h"
#include "formats/folder/file_list.h"
#include "runtime/saving/trainer_state.h"

namespace snug::runtime {
namespace {

using testing::contains;
using testing::TemporaryFolder;

// A checkpoint as far as its state tells: one file of four bytes.
void make_checkpoint(const TemporaryFolder& folder, int64_t step) {
  const std::string name = "checkpoint-" + std::to_string(step);
  TrainerState state;
  state.step = step;
  state.max_steps = 1000;
  state.rows_consumed = step;
  state.files = {{"adapter_model.safetensors", 4}};
  folder.write(name + "/adapter_model.safetensors", "four");
  folder.write(name + "/trainer_state.json", to_json(state));
  formats::write_file_list(folder / name);
}

std::vector<int64_t> steps_of(const CheckpointList& list) {
  std::vector<int64_t> steps;
  for (const CheckpointFolder& checkpoint : list.complete) steps.push_back(checkpoint.step);
  return steps;
}

TEST(CheckpointFolders, AreOrderedByStepAndNotByName) {
  TemporaryFolder folder;
  for (const int64_t step : {9, 100, 20}) make_checkpoint(folder, step);
  EXPECT_EQ(steps_of(list_checkpoints(folder.path())), (std::vector<int64_t>{9, 20, 100}));
  EXPECT_EQ(find_latest_checkpoint(folder.path()), folder / "checkpoint-100");
  EXPECT_EQ(checkpoint_path(folder.path(), 20), folder / "checkpoint-20");
}

TEST(CheckpointFolders, NothingToFind) {
  TemporaryFolder folder;
  EXPECT_FALSE(find_latest_checkpoint(folder.path()).has_value());
  EXPECT_FALSE(find_latest_checkpoint(folder / "missing").has_value());
  prune_checkpoints(folder / "missing", 9, 1);
}

TEST(CheckpointFolders, IncompleteAndForeignOnesArePassedOver) {
  TemporaryFolder folder;
  make_checkpoint(folder, 10);
  make_checkpoint(folder, 20);
  make_checkpoint(folder, 30);
  folder.write("checkpoint-20/adapter_model.safetensors", "fou");
  std::filesystem::remove(folder / "checkpoint-30/trainer_state.json");
  folder.write("checkpoint-40/trainer_state.json", R"({"global_step": 40})");
  folder.write("checkpoint-50.snug-tmp-1/trainer_state.json", "{}");
  folder.write("checkpoint-best/trainer_state.json", "{}");
  folder.write("checkpoint-60", "a file");
  const CheckpointList list = list_checkpoints(folder.path());
  EXPECT_EQ(steps_of(list), std::vector<int64_t>{10});
  ASSERT_EQ(list.ignored.size(), 3U);
  EXPECT_TRUE(contains(list.ignored[0], "checkpoint-20/adapter_model.safetensors: the file has 3"));
  EXPECT_TRUE(contains(list.ignored[1], "checkpoint-30"));
  EXPECT_TRUE(contains(list.ignored[2], "not a checkpoint of Snug"));
  EXPECT_EQ(find_latest_checkpoint(folder.path()), folder / "checkpoint-10");
}

// Renamed or copied, it would count its steps again.
TEST(CheckpointFolders, TheNameIsThatOfTheStep) {
  TemporaryFolder folder;
  make_checkpoint(folder, 10);
  std::filesystem::rename(folder / "checkpoint-10", folder / "checkpoint-90");
  const CheckpointList list = list_checkpoints(folder.path());
  EXPECT_TRUE(list.complete.empty());
  ASSERT_EQ(list.ignored.size(), 1U);
  EXPECT_TRUE(contains(list.ignored[0], "says step 90 and its trainer_state.json says step 10"));
}

TEST(CheckpointFolders, PruningKeepsTheNewestCompleteOnes) {
  TemporaryFolder folder;
  for (int64_t step = 1; step <= 5; ++step) make_checkpoint(folder, step);
  std::filesystem::remove(folder / "checkpoint-5/adapter_model.safetensors");
  prune_checkpoints(folder.path(), 4, 0);
  EXPECT_EQ(folder.count(), 5U);
  prune_checkpoints(folder.path(), 4, 2);
  EXPECT_EQ(steps_of(list_checkpoints(folder.path())), (std::vector<int64_t>{3, 4}));
  EXPECT_TRUE(std::filesystem::exists(folder / "checkpoint-5")) << "not ours to remove";
  EXPECT_EQ(folder.count(), 3U);
  prune_checkpoints(folder.path(), 4, 9);
  EXPECT_EQ(folder.count(), 3U);
}

// A run that went back to step 3 has just written 4: what an abandoned run left is not newer.
TEST(CheckpointFolders, PruningKeepsWhatWasWrittenLast) {
  TemporaryFolder folder;
  for (const int64_t step : {3, 4, 9}) make_checkpoint(folder, step);
  prune_checkpoints(folder.path(), 4, 1);
  EXPECT_EQ(steps_of(list_checkpoints(folder.path())), (std::vector<int64_t>{4, 9}));
}

// As transformers' rotate_checkpoints: the newest and the best count, and both stay.
TEST(CheckpointFolders, PruningSparesSomeWhateverTheLimit) {
  const std::array<int64_t, 2> spared{2, 0};
  for (const int64_t keep : {1, 2}) {
    TemporaryFolder folder;
    for (int64_t step = 1; step <= 5; ++step) make_checkpoint(folder, step);
    prune_checkpoints(folder.path(), 5, keep, spared);
    EXPECT_EQ(steps_of(list_checkpoints(folder.path())), (std::vector<int64_t>{2, 5})) << keep;
  }
  TemporaryFolder folder;
  for (int64_t step = 1; step <= 5; ++step) make_checkpoint(folder, step);
  prune_checkpoints(folder.path(), 5, 3, spared);
  EXPECT_EQ(steps_of(list_checkpoints(folder.path())), (std::vector<int64_t>{2, 4, 5}));
}

TEST(CheckpointFolders, PruningKeepsWhatAUserPutIntoOne) {
  TemporaryFolder folder;
  for (const int64_t step : {3, 6, 9}) make_checkpoint(folder, step);
  folder.write("checkpoint-3/notes.txt", "mine");
  prune_checkpoints(folder.path(), 9, 1);
  EXPECT_EQ(steps_of(list_checkpoints(folder.path())), (std::vector<int64_t>{3, 9}));
}

}  // namespace
}  // namespace snug::runtime
