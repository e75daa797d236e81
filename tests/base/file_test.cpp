#include "base/file.h"
#include "base/damaged_file.h"
#include "base/temporary_file.h"

#include "small_disk.h"
#include "temporary_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <vector>

namespace snug::base {
namespace {

namespace fs = std::filesystem;
using testing::contains;
using testing::TemporaryFolder;
using testing::user_error_of;

TEST(File, WritesAndReadsAtPositions) {
  const TemporaryFolder folder;
  File file = File::create(folder / "a");
  file.write_at(4, "efgh", 4);
  file.write_at(0, "abcd", 4);
  file.sync();
  file.close();
  EXPECT_EQ(read_text_file(folder / "a"), "abcdefgh");

  const File reader = File::open_for_reading(folder / "a");
  std::vector<char> bytes(8);
  std::thread other([&] { reader.read_at(0, bytes.data(), 4); });
  reader.read_at(4, bytes.data() + 4, 4);
  other.join();
  EXPECT_EQ(std::string(bytes.begin(), bytes.end()), "abcdefgh");
}

TEST(File, ReadingPastTheEndSaysTruncated) {
  const TemporaryFolder folder;
  const File file = File::open_for_reading(folder.write("a", "12345"));
  char bytes[8];
  EXPECT_TRUE(contains(user_error_of([&] { file.read_at(2, bytes, 8); }), "ends at byte 5"));
}

TEST(File, UpdateKeepsTheContents) {
  const TemporaryFolder folder;
  const fs::path path = folder.write("a", "12345");
  File file = File::open_for_update(path);
  file.truncate(3);
  file.write_at(3, "x", 1);
  EXPECT_EQ(read_text_file(path), "123x");
}

TEST(File, FoldersAndMissingFilesAreErrors) {
  const TemporaryFolder folder;
  EXPECT_TRUE(
      contains(user_error_of([&] { File::open_for_reading(folder.path()); }), "this is a folder"));
  EXPECT_TRUE(
      contains(user_error_of([&] { File::open_for_reading(folder / "none"); }), "check the path"));
  EXPECT_TRUE(contains(user_error_of([&] { File::create(folder / "no/file"); }), "cannot write"));
}

// A copy that was cut off may be as large as what was to be copied, and hold nothing.
TEST(File, TextThatWasNeverWrittenIsRefusedAtItsBeginning) {
  const TemporaryFolder folder;
  const fs::path path = folder / "a";
  File::create(path).truncate(int64_t{1} << 30);
  EXPECT_TRUE(contains(user_error_of([&] { read_text_file(path); }), "begins with 64 NUL bytes"));
  folder.write("b", std::string(3, '\0'));
  EXPECT_TRUE(
      contains(user_error_of([&] { read_text_file(folder / "b"); }), "begins with 3 NUL bytes"));
  folder.write("c", std::string(64, '\0') + "x");
  EXPECT_THROW(read_text_file(folder / "c"), UserError);
  folder.write("d", std::string("\0x", 2));
  EXPECT_EQ(read_text_file(folder / "d").size(), 2U);
  folder.write("e", "");
  EXPECT_EQ(read_text_file(folder / "e"), "");
}

TEST(File, TooLargeTextIsRefused) {
  const TemporaryFolder folder;
  const fs::path path = folder.write("a", "12345");
  EXPECT_EQ(read_text_file(path, 5), "12345");
  EXPECT_TRUE(contains(user_error_of([&] { read_text_file(path, 4); }), "has 5 bytes, more than"));
}

// Opening one would wait for its other end, which may never come.
TEST(File, PipesAndDevicesAreRefusedAtOnce) {
  const TemporaryFolder folder;
  const fs::path pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const auto is_pipe = [](const std::string& error) { return contains(error, "this is a pipe"); };
  EXPECT_TRUE(is_pipe(user_error_of([&] { read_text_file(pipe); })));
  EXPECT_TRUE(is_pipe(user_error_of([&] { File::open_for_reading(pipe); })));
  EXPECT_TRUE(is_pipe(user_error_of([&] { File::create(pipe); })));
  EXPECT_TRUE(is_pipe(user_error_of([&] { File::open_for_update(pipe); })));
  EXPECT_TRUE(contains(user_error_of([&] { read_text_file("/dev/zero"); }), "this is a device"));
}

TEST(File, AFolderThatCannotBeMadeIsSaidBefore) {
  const TemporaryFolder folder;
  require_writable_folder(folder.path());
  require_writable_folder(folder / "new/and/newer");
  EXPECT_EQ(folder.count(), 0U) << "nothing is made";
  folder.write("file", "");
  EXPECT_TRUE(contains(user_error_of([&] { require_writable_folder(folder / "file/in"); }),
                       "file is a file"));
  EXPECT_TRUE(
      contains(user_error_of([&] { require_writable_folder(folder / std::string(300, 'x')); }),
               "File name too long"));
  fs::create_symlink("loop", folder / "loop");
  EXPECT_TRUE(contains(user_error_of([&] { require_writable_folder(folder / "loop/in"); }),
                       "leads back to itself"));
  // Not even root may make a folder there, and access() does not say so.
  EXPECT_TRUE(
      contains(user_error_of([&] { require_writable_folder("/proc/snug/run"); }), "cannot"));
}

// The memory of a process is a file whose first page cannot be read: an input/output error.
TEST(File, WhatTheDiskDoesNotGiveBackIsDamaged) {
  const File memory = File::open_for_reading("/proc/self/mem");
  char byte = 0;
  EXPECT_THROW(memory.read_at(0, &byte, 1), DamagedFile);
}

TEST(File, FullDiskIsSaidPlainly) {
  File file = File::create("/dev/full");
  EXPECT_TRUE(contains(user_error_of([&] { file.write_at(0, "x", 1); }),
                       "cannot write /dev/full: No space left on device; free some space"));
}

TEST(File, AtomicWriteReplacesOrLeavesTheOld) {
  const TemporaryFolder folder;
  const fs::path path = folder.write("a", "old");
  write_file_atomically(path, "new");
  EXPECT_EQ(read_text_file(path), "new");

  {
    const testing::SmallDisk full(0);
    EXPECT_TRUE(contains(user_error_of([&] { write_file_atomically(path, "newer"); }),
                         "cannot write " + path.string() + ": File too large"));
  }
  EXPECT_EQ(read_text_file(path), "new");
  EXPECT_EQ(folder.count(), 1U);
}

// Of what is written at a temporary path, the user knows where it is to be.
TEST(File, WhatIsWrittenIsNamedAsTheUserKnowsIt) {
  EXPECT_EQ(name_of_written("a/b.json"), "a/b.json");
  EXPECT_EQ(name_of_written("a/b.json.snug-tmp"), "a/b.json");
  EXPECT_EQ(name_of_written("/a/x.snug-tmp-41"), "/a/x");
  EXPECT_EQ(name_of_written("/a/x.snug-tmp-41/new"), "/a/x");
  EXPECT_EQ(name_of_written("x.snug-tmp-41/new/b.json.snug-tmp"), "b.json of x");
  EXPECT_EQ(name_of_written("/a/x.snug-tmp-41/new/model.snug-tmp-41/new/b.json.snug-tmp"),
            "b.json of /a/x");
  // A user's own.
  for (const std::string path : {"x.snug-tmp-41/b.json", "x.snug-tmp-/new/b", "x.snug-tmp-4a/new/b",
                                 "a//new/b", "x.snug-tmp-41/old/b.json"})
    EXPECT_EQ(name_of_written(path), path);
}

TEST(File, AnErrorNamesATemporaryPathOnlyWhereItIsReadOrRemoved) {
  const fs::path staged = "x.snug-tmp-41/new/b.json.snug-tmp";
  const auto error = [&](const char* action) {
    return user_error_of([&] { throw_system_error(action, staged, ENOSPC); });
  };
  EXPECT_TRUE(contains(error("write"), "cannot write b.json of x: No space left on device; free"));
  EXPECT_TRUE(contains(error("reserve 7 bytes for"), "reserve 7 bytes for b.json of x: No space"));
  EXPECT_TRUE(contains(error("remove"), "cannot remove " + staged.string()));
  EXPECT_TRUE(contains(error("read"), "cannot read " + staged.string()));
  const TemporaryFolder folder;
  const fs::path here = folder.write("b.snug-tmp", "");
  EXPECT_TRUE(contains(user_error_of([&] { rename_durably(here, folder / "no/b"); }),
                       "cannot write " + (folder / "no/b").string() + ": No such file"));
}

// What lies where a file is written first is removed only if nobody else can mean it.
TEST(File, AtomicWriteTouchesNothingElse) {
  const TemporaryFolder folder;
  const fs::path path = folder / "a";
  const fs::path temporary = folder.write("a.snug-tmp", "left by a process that was killed");
  write_file_atomically(path, "new");
  EXPECT_FALSE(fs::exists(temporary));
  const fs::path precious = folder.write("precious", "keep");
  const auto refused = [&] {
    const std::string error = user_error_of([&] { write_file_atomically(path, "newer"); });
    fs::remove(temporary);
    return contains(error, "is in the way");
  };
  fs::create_symlink(precious, temporary);
  EXPECT_TRUE(refused());
  fs::create_hard_link(precious, temporary);
  EXPECT_TRUE(refused());
  fs::create_directory(temporary);
  EXPECT_TRUE(refused());
  EXPECT_EQ(read_text_file(precious), "keep");
  EXPECT_EQ(read_text_file(path), "new");
}

TEST(File, CopiesInPieces) {
  const TemporaryFolder folder;
  const std::string text(700'001, 'x');
  copy_file_atomically(folder.write("a", text), folder / "b");
  EXPECT_EQ(read_text_file(folder / "b"), text);
}

TEST(File, ReserveReportsTheFileSizeLimit) {
  const TemporaryFolder folder;
  const testing::SmallDisk small(1 << 16);
  File file = File::create(folder / "a");
  const std::string error = user_error_of([&] { file.reserve(1 << 20); });
  EXPECT_TRUE(contains(error, "cannot reserve 1048576 bytes for"));
  EXPECT_TRUE(contains(error, "ulimit -f"));
}

}  // namespace
}  // namespace snug::base
