#include "formats/folder/directory_transaction.h"

#include "../base/captured_stream.h"
#include "formats/folder/file_list.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>
#include <string>
#include <vector>

namespace snug::formats {
namespace {

namespace fs = std::filesystem;
using testing::CapturedStream;
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

TEST(DirectoryTransaction, DoesNotBringBackAParentThatMustExist) {
  const TemporaryFolder folder;
  EXPECT_THROW(
      DirectoryTransaction(folder / "run/checkpoint-1", DirectoryTransaction::Parent::must_exist),
      base::UserError);
  EXPECT_EQ(folder.count(), 0U);
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

// Folders that something was added to or changed in, and files, whoever made them. A link stays:
// what it leads to is replaced.
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
  for (const char* name : {"own", "added", "changed", "foreign", "file"}) replace(name);
  EXPECT_FALSE(fs::exists(folder / "own.kept-1"));
  EXPECT_EQ(base::read_text_file(folder / "added.kept-1/sub/notes"), "mine");
  EXPECT_EQ(base::read_text_file(folder / "changed.kept-1/f"), "mine, longer");
  EXPECT_EQ(base::read_text_file(folder / "foreign.kept-1/f"), "mine");
  EXPECT_EQ(base::read_text_file(folder / "file.kept-1"), "mine");
  replace("link");
  EXPECT_EQ(fs::read_symlink(folder / "link"), folder / "own");
  EXPECT_FALSE(fs::exists(folder / "own.kept-1"));
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

// As a killed process left it: "x" being made, "old" moved out of its way.
void leave(const TemporaryFolder& folder, const std::string& name, std::set<std::string> parts) {
  const fs::path leftover = fs::path(name + ".snug-tmp-" + std::to_string(dead_process()));
  folder.write((leftover / ".snug_staging").string(), "");
  for (const std::string& part : parts) {
    folder.write((leftover / part / "f").string(), part);
    write_file_list(folder / (leftover / part).string());
  }
}

TEST(DirectoryTransaction, LeftoversAreRemovedOrPutBack) {
  const TemporaryFolder folder;
  leave(folder, "bare", {});
  leave(folder, "unfinished", {"new"});
  leave(folder, "lost", {"old", "new"});
  leave(folder, "arrived", {"old"});
  folder.write("arrived/f", "new");
  leave(folder, "taken", {"old", "new"});
  folder.write("taken/f", "made meanwhile");
  fs::create_directory(folder / "unmarked.snug-tmp-1");  // killed before there was a mark
  remove_leftovers(folder.path());
  EXPECT_EQ(base::read_text_file(folder / "lost/f"), "old");
  EXPECT_EQ(base::read_text_file(folder / "arrived/f"), "new");
  EXPECT_EQ(base::read_text_file(folder / "taken/f"), "made meanwhile");
  EXPECT_EQ(base::read_text_file(folder / "taken.kept-1/f"), "old");
  EXPECT_EQ(folder.count(), 4U);
  remove_leftovers(folder / "no/such/folder");
}

TEST(DirectoryTransaction, AnOldFolderThatWasChangedIsKept) {
  const TemporaryFolder folder;
  const std::string leftover = "x.snug-tmp-" + std::to_string(dead_process());
  folder.write("x/f", "new");
  folder.write(leftover + "/.snug_staging", "");
  folder.write(leftover + "/old/f", "not listed");
  remove_leftovers(folder.path());
  EXPECT_EQ(base::read_text_file(folder / "x/f"), "new");
  EXPECT_EQ(base::read_text_file(folder / "x.kept-1/f"), "not listed");
  EXPECT_EQ(folder.count(), 2U);
}

// Those of processes that this one cannot see, such as those of another container, too: names and
// numbers say nothing.
TEST(DirectoryTransaction, FoldersThatAreHeldAreNoLeftovers) {
  const TemporaryFolder folder;
  const DirectoryTransaction transaction(folder / "x");
  write_into(transaction, "1");
  const std::string held = "x.snug-tmp-" + std::to_string(::getpid());
  const std::string moved = "x.snug-tmp-" + std::to_string(dead_process());
  remove_leftovers(folder.path());
  EXPECT_TRUE(fs::exists(folder / held));
  fs::rename(folder / held, folder / moved);
  remove_leftovers(folder.path());
  EXPECT_TRUE(fs::exists(folder / moved));
  fs::rename(folder / moved, folder / held);
}

// Two containers may have processes of one number that write the same target.
TEST(DirectoryTransaction, TwoOfOneTargetDoNotShareAFolder) {
  const TemporaryFolder folder;
  DirectoryTransaction first(folder / "x");
  write_into(first, "1");
  DirectoryTransaction second(folder / "x");
  EXPECT_NE(first.staging(), second.staging());
  write_into(second, "2");
  first.commit();
  second.commit(DirectoryTransaction::IfExists::replace);
  EXPECT_EQ(base::read_text_file(folder / "x/f"), "2");
  EXPECT_EQ(folder.count(), 1U);
}

// What a user may name so is not taken for a leftover, whatever number it has.
TEST(DirectoryTransaction, LeavesNamesOfOthersAlone) {
  const TemporaryFolder folder;
  const std::string dead = std::to_string(dead_process());
  const std::vector<std::string> names{
      "x.tmp-2024",         "x.old-2024",         "x.snug-tmp-",       "x.snug-tmp-1a",
      "x.snug-tmp-" + dead, "x.snug-old-" + dead, "y.snug-old-" + dead};
  for (const std::string& name : names) folder.write(name + "/f", "mine");
  folder.write("target/.snug_staging", "");
  folder.write("target/new/f", "mine");
  fs::create_directory_symlink(folder / "target", folder / "link.snug-tmp-1");
  make(folder, "x", "new");
  for (const std::string& name : names) EXPECT_TRUE(fs::exists(folder / (name + "/f"))) << name;
  EXPECT_TRUE(fs::exists(folder / "target/new/f"));
  EXPECT_TRUE(fs::is_symlink(folder / "link.snug-tmp-1"));
}

TEST(DirectoryTransaction, WhatCannotBePutBackIsNamed) {
  const TemporaryFolder folder;
  leave(folder, "lost", {"old"});
  fs::path leftover;
  for (const auto& entry : base::list_folder(folder.path())) leftover = entry.path();
  fs::permissions(folder.path(), fs::perms::all);
  fs::permissions(leftover / ".snug_staging", fs::perms::all);
  fs::permissions(leftover, fs::perms::all);
  fs::permissions(leftover,
                  fs::perms::owner_write | fs::perms::group_write | fs::perms::others_write,
                  fs::perm_options::remove);
  const bool is_root = ::geteuid() == 0;
  ASSERT_EQ(::seteuid(is_root ? 65534 : ::geteuid()), 0);
  std::error_code unreachable;
  if (!fs::exists(leftover, unreachable)) {
    ASSERT_EQ(::seteuid(0), 0);
    GTEST_SKIP() << folder.path() << " cannot be reached by another user";
  }
  std::string said;
  {
    const CapturedStream stream(stderr);
    remove_leftovers(folder.path());
    said = stream.text();
  }
  ASSERT_EQ(::seteuid(is_root ? 0 : ::geteuid()), 0);
  EXPECT_TRUE(contains(said, (leftover / "old").string())) << said;
  EXPECT_TRUE(contains(said, "Permission denied")) << said;
  EXPECT_TRUE(fs::exists(leftover / "old/f"));
  fs::permissions(leftover, fs::perms::owner_all);
  remove_leftovers(folder.path());
  EXPECT_EQ(base::read_text_file(folder / "lost/f"), "old");
}

TEST(DirectoryTransaction, RemovedFoldersLeaveNothing) {
  const TemporaryFolder folder;
  make(folder, "x", "1");
  EXPECT_FALSE(fs::exists(folder / "x/.snug_staging"));
  remove_directory(folder / "x/");
  EXPECT_EQ(folder.count(), 0U);
  EXPECT_TRUE(contains(user_error_of([&] { remove_directory(folder / "x"); }), "cannot remove"));
  EXPECT_EQ(folder.count(), 0U);
}

TEST(DirectoryTransaction, FolderThatCannotBeMade) {
  const TemporaryFolder folder;
  folder.write("file", "x");
  EXPECT_TRUE(
      contains(user_error_of([&] { DirectoryTransaction t(folder / "file/x"); }), "cannot create"));
}

}  // namespace
}  // namespace snug::formats
