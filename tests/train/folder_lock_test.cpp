#include "train/folder_lock.h"

#include <gtest/gtest.h>

#include "../base/temporary_folder.h"

namespace snug::train {
namespace {

namespace fs = std::filesystem;

TEST(FolderLock, IsHeldOnceAndUntilItIsGone) {
  const testing::TemporaryFolder folder;
  {
    const auto first = FolderLock::take(folder.path());
    ASSERT_TRUE(first);
    EXPECT_FALSE(FolderLock::take(folder.path()));
  }
  EXPECT_TRUE(FolderLock::take(folder.path()));
  EXPECT_THROW(FolderLock::take(folder.write("file", "")), base::UserError);
}

TEST(FolderLock, KnowsWhereItsFolderIs) {
  const testing::TemporaryFolder folder;
  const fs::path path = folder / "run";
  fs::create_directory(path);
  const auto lock = FolderLock::take(path);
  EXPECT_TRUE(lock->is_in_place());
  fs::rename(path, folder / "moved");
  EXPECT_FALSE(lock->is_in_place());
  fs::create_directory(path);
  EXPECT_FALSE(lock->is_in_place()) << "another folder of the same name";
  EXPECT_EQ(lock->present_path(), folder / "moved");
  fs::remove(folder / "moved");
  EXPECT_EQ(lock->present_path(), std::nullopt);
}

TEST(FolderLock, AnEmptiedFolderIsLost) {
  const testing::TemporaryFolder folder;
  const auto path = folder.write("run/mark", "").parent_path();
  auto lock = FolderLock::take(path);
  ASSERT_TRUE(lock);
  lock->watch("mark");
  EXPECT_TRUE(lock->is_in_place());
  EXPECT_TRUE(lock->present_path());
  std::filesystem::remove(path / "mark");
  EXPECT_FALSE(lock->is_in_place());
  EXPECT_FALSE(lock->present_path());
}

}  // namespace
}  // namespace snug::train
