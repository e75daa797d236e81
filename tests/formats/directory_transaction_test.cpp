#include "formats/directory_transaction.h"

#include "../base/temporary_folder.h"
#include "formats/file_list.h"

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

// As an earlier process left it.
void make(const TemporaryFolder& folder, const std::string& name, const std::string& text) {
  DirectoryTransaction transaction(folder / name);
  write_into(transaction, text);
  transaction.commit();
}

TEST(DirectoryTransaction, ExistingTargetsAreKeptOrReplaced) {
  const TemporaryFolder folder;
  folder.write("x/f", "old");
  folder.write("x/only-in-old", "old");
  write_file_list(folder / "x");
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

// Folders that something was added to or changed in, links, and files, whoever made them.
TEST(DirectoryTransaction, WhatSnugDidNotWriteIsKeptUnderAnotherName) {
  const TemporaryFolder folder;
  const auto replace = [&](const std::string& name) {
    DirectoryTransaction transaction(folder / name);
    write_into(transaction, "new");
    transaction.commit(DirectoryTransaction::IfExists::replace);
    EXPECT_EQ(base::read_text_file(folder / (name + "/f")), "new") << name;
  };
  for (const char* name : {"own", "added", "changed"}) make(folder, name, "old");
  folder.write("added/sub/notes", "mine");
  folder.write("changed/f", "mine, longer");
  folder.write("foreign/f", "mine");
  folder.write("file", "mine");
  fs::create_directory_symlink(folder / "own", folder / "link");
  for (const char* name : {"own", "added", "changed", "foreign", "file", "link"}) replace(name);
  EXPECT_FALSE(fs::exists(folder / "own.kept-1"));
  EXPECT_EQ(base::read_text_file(folder / "added.kept-1/sub/notes"), "mine");
  EXPECT_EQ(base::read_text_file(folder / "changed.kept-1/f"), "mine, longer");
  EXPECT_EQ(base::read_text_file(folder / "foreign.kept-1/f"), "mine");
  EXPECT_EQ(base::read_text_file(folder / "file.kept-1"), "mine");
  EXPECT_EQ(fs::read_symlink(folder / "link.kept-1"), folder / "own");
  folder.write("added/sub/notes", "mine again");
  replace("added");
  EXPECT_EQ(base::read_text_file(folder / "added.kept-2/sub/notes"), "mine again");
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
  EXPECT_FALSE(fs::exists(folder / ("x.snug-tmp-" + std::to_string(child))));
}

TEST(DirectoryTransaction, RemovesLeftoversOfDeadProcessesOnly) {
  const TemporaryFolder folder;
  const std::string dead = std::to_string(dead_process());
  const std::string alive = std::to_string(::getppid());
  folder.write("x.snug-tmp-" + dead + "/f", "1");
  folder.write("x.snug-tmp-" + alive + "/f", "1");
  folder.write("x.snug-tmp-" + std::to_string(::getpid()) + "/f",
               "of an earlier process of our number");
  folder.write("x.snug-tmp-notes/f", "1");
  folder.write("kept/f", "new");
  folder.write("kept.snug-old-" + dead + "/f", "replaced");
  folder.write("lost.snug-old-" + dead + "/f", "not yet replaced");
  remove_leftovers(folder.path());
  EXPECT_FALSE(fs::exists(folder / ("x.snug-tmp-" + dead)));
  EXPECT_TRUE(fs::exists(folder / ("x.snug-tmp-" + alive)));
  EXPECT_FALSE(fs::exists(folder / ("x.snug-tmp-" + std::to_string(::getpid()))));
  EXPECT_TRUE(fs::exists(folder / "x.snug-tmp-notes"));
  EXPECT_FALSE(fs::exists(folder / ("kept.snug-old-" + dead)));
  EXPECT_EQ(base::read_text_file(folder / "kept/f"), "new");
  EXPECT_EQ(base::read_text_file(folder / "lost/f"), "not yet replaced");
  remove_leftovers(folder / "no/such/folder");
  remove_leftovers(folder.path(), Others::locked_out);
  EXPECT_FALSE(fs::exists(folder / ("x.snug-tmp-" + alive)));
}

// What a user may name so is not taken for a leftover.
TEST(DirectoryTransaction, LeavesNamesOfOthersAlone) {
  const TemporaryFolder folder;
  for (const char* name : {"x.tmp-2024", "x.old-2024", "x.snug-tmp-", "x.snug-tmp-1a"})
    folder.write(std::string(name) + "/f", "mine");
  make(folder, "x", "new");
  EXPECT_EQ(folder.count(), 5U);
}

TEST(DirectoryTransaction, FolderThatCannotBeMade) {
  const TemporaryFolder folder;
  folder.write("file", "x");
  EXPECT_TRUE(
      contains(user_error_of([&] { DirectoryTransaction t(folder / "file/x"); }), "cannot create"));
}

}  // namespace
}  // namespace snug::formats
