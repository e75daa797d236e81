#include "formats/directory_transaction.h"

#include "../base/temporary_folder.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

namespace snug::formats {
namespace {

namespace fs = std::filesystem;
using testing::contains;
using testing::TemporaryFolder;
using testing::user_error_of;

void write_into(const DirectoryTransaction& transaction, const std::string& text) {
  base::write_file_atomically(transaction.staging() / "f", text);
  fs::create_directories(transaction.staging() / "sub");
  base::write_file_atomically(transaction.staging() / "sub/g", text);
}

// The number of a process that has ended.
pid_t dead_process() {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  return child;
}

TEST(DirectoryTransaction, AppearsWhole) {
  const TemporaryFolder folder;
  DirectoryTransaction transaction(folder / "runs/x/checkpoint-1/");
  write_into(transaction, "1");
  EXPECT_FALSE(fs::exists(folder / "runs/x/checkpoint-1"));
  transaction.commit();
  EXPECT_EQ(base::read_text_file(folder / "runs/x/checkpoint-1/sub/g"), "1");
  EXPECT_FALSE(fs::exists(transaction.staging()));
}

TEST(DirectoryTransaction, LeavesNothingWhenAbandoned) {
  const TemporaryFolder folder;
  {
    const DirectoryTransaction transaction(folder / "x");
    write_into(transaction, "1");
    EXPECT_EQ(folder.count(), 1U);
  }
  EXPECT_EQ(folder.count(), 0U);
}

TEST(DirectoryTransaction, ExistingTargetsAreKeptOrReplaced) {
  const TemporaryFolder folder;
  folder.write("x/f", "old");
  folder.write("x/only-in-old", "old");
  {
    DirectoryTransaction transaction(folder / "x");
    write_into(transaction, "new");
    EXPECT_TRUE(
        contains(user_error_of([&] { transaction.commit(); }), "the folder already exists"));
  }
  EXPECT_EQ(base::read_text_file(folder / "x/f"), "old");
  EXPECT_EQ(folder.count(), 1U);

  DirectoryTransaction transaction(folder / "x");
  write_into(transaction, "new");
  transaction.commit(DirectoryTransaction::IfExists::replace);
  EXPECT_EQ(base::read_text_file(folder / "x/f"), "new");
  EXPECT_FALSE(fs::exists(folder / "x/only-in-old"));
  EXPECT_EQ(folder.count(), 1U);
}

TEST(DirectoryTransaction, TwoAtOnceDoNotDisturbEachOther) {
  const TemporaryFolder folder;
  DirectoryTransaction first(folder / "a");
  write_into(first, "1");
  DirectoryTransaction second(folder / "b");
  write_into(second, "2");
  first.commit();
  second.commit();
  EXPECT_EQ(base::read_text_file(folder / "a/f"), "1");
  EXPECT_EQ(base::read_text_file(folder / "b/f"), "2");
}

TEST(DirectoryTransaction, KilledWritersLeaveTheOldAndALeftoverThatIsRemoved) {
  const TemporaryFolder folder;
  folder.write("x/f", "old");
  const pid_t child = ::fork();
  if (child == 0) {
    const DirectoryTransaction transaction(folder / "x");
    write_into(transaction, "new");
    ::kill(::getpid(), SIGKILL);
  }
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(folder.count(), 2U) << "the folder and the leftover";
  EXPECT_EQ(base::read_text_file(folder / "x/f"), "old");

  const DirectoryTransaction next(folder / "y");
  EXPECT_FALSE(fs::exists(folder / ("x.tmp-" + std::to_string(child))));
}

TEST(DirectoryTransaction, RemovesLeftoversOfDeadProcessesOnly) {
  const TemporaryFolder folder;
  const std::string dead = std::to_string(dead_process());
  const std::string alive = std::to_string(::getppid());
  folder.write("x.tmp-" + dead + "/f", "1");
  folder.write("x.tmp-" + alive + "/f", "1");
  folder.write("x.tmp-" + std::to_string(::getpid()) + "/f", "of an earlier process of our number");
  folder.write("x.tmp-notes/f", "1");
  folder.write("kept/f", "new");
  folder.write("kept.old-" + dead + "/f", "replaced");
  folder.write("lost.old-" + dead + "/f", "not yet replaced");
  remove_leftovers(folder.path());
  EXPECT_FALSE(fs::exists(folder / ("x.tmp-" + dead)));
  EXPECT_TRUE(fs::exists(folder / ("x.tmp-" + alive)));
  EXPECT_FALSE(fs::exists(folder / ("x.tmp-" + std::to_string(::getpid()))));
  EXPECT_TRUE(fs::exists(folder / "x.tmp-notes"));
  EXPECT_FALSE(fs::exists(folder / ("kept.old-" + dead)));
  EXPECT_EQ(base::read_text_file(folder / "kept/f"), "new");
  EXPECT_EQ(base::read_text_file(folder / "lost/f"), "not yet replaced");
  remove_leftovers(folder / "no/such/folder");
}

TEST(DirectoryTransaction, FolderThatCannotBeMade) {
  const TemporaryFolder folder;
  folder.write("file", "x");
  EXPECT_TRUE(
      contains(user_error_of([&] { DirectoryTransaction t(folder / "file/x"); }), "cannot create"));
}

}  // namespace
}  // namespace snug::formats
