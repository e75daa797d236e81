#include "formats/folder/file_list.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "../base/temporary_folder.h"

namespace snug::formats {
namespace {

namespace fs = std::filesystem;
using testing::TemporaryFolder;

TEST(FileList, KnowsAFolderWhereverItIs) {
  const TemporaryFolder folder;
  folder.write("x/f", "1");
  folder.write("x/sub/g", "2");
  EXPECT_EQ(foreign_entry(folder / "x"), ".snug_files.json") << "not listed yet";
  write_file_list(folder / "x");
  EXPECT_EQ(foreign_entry(folder / "x"), std::nullopt);
  fs::copy(folder / "x", folder / "copy", fs::copy_options::recursive);
  fs::rename(folder / "copy", folder / "moved");
  EXPECT_EQ(foreign_entry(folder / "moved"), std::nullopt);
  fs::remove(folder / "x/f");
  EXPECT_EQ(foreign_entry(folder / "x"), std::nullopt) << "what is missing is nobody's";
  EXPECT_EQ(damaged_entry(folder / "x"), "f");
  folder.write("moved/mine", "3");
  EXPECT_EQ(damaged_entry(folder / "moved"), std::nullopt) << "everything is there";
  folder.write("moved/sub/g", "longer");
  EXPECT_EQ(damaged_entry(folder / "moved"), "sub/g");
  fs::remove(folder / "moved/.snug_files.json");
  EXPECT_EQ(damaged_entry(folder / "moved"), ".snug_files.json");
}

TEST(FileList, NamesWhatIsNotAsItWasWritten) {
  const TemporaryFolder folder;
  const auto after = [&](const auto& change) {
    fs::remove_all(folder / "x");
    folder.write("x/f", "1");
    folder.write("x/sub/g", "2");
    write_file_list(folder / "x");
    change();
    return foreign_entry(folder / "x");
  };
  EXPECT_EQ(after([&] { folder.write("x/sub/new", "mine"); }), "sub/new");
  EXPECT_EQ(after([&] { folder.write("x/f", "longer"); }), "f");
  EXPECT_EQ(after([&] { folder.write("x/.snug_files.json", "{\"files\": 1}"); }),
            ".snug_files.json");
  EXPECT_EQ(after([&] {
              fs::rename(folder / "x/f", folder / "f");
              fs::create_symlink(folder / "f", folder / "x/f");
            }),
            "f");
}

TEST(FileList, FoldersThatHoldNothingAndWhatIsNoFolder) {
  const TemporaryFolder folder;
  fs::create_directory(folder / "empty");
  fs::create_directory_symlink(folder / "empty", folder / "link");
  EXPECT_EQ(foreign_entry(folder / "empty"), std::nullopt);
  EXPECT_EQ(foreign_entry(folder / "link"), ".");
  EXPECT_EQ(foreign_entry(folder / "missing"), ".");
  EXPECT_EQ(foreign_entry(folder.write("file", "mine")), ".");
}

}  // namespace
}  // namespace snug::formats
