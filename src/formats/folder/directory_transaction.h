// A directory that appears either whole or not at all: files are written into a folder next to it
// (formats/folder/staging_folder.h), listed (formats/folder/file_list.h) and synced, and then the
// folder is renamed. A process killed at any moment leaves the old directory (or none) and a
// leftover, which the next transaction in the same parent removes. Not thread-safe.
#pragma once

#include <filesystem>

#include "formats/folder/staging_folder.h"

namespace snug::formats {

class DirectoryTransaction {
 public:
  // With must_exist, a parent that was just renamed or removed is not created again.
  enum class Parent { create, must_exist };
  // A target that is a symbolic link stands for what it leads to, which may be on another disk.
  // Creates the parent if allowed, and the empty staging directory, after removing the leftovers of
  // killed processes. Without a commit, the staging directory is removed again. Throws UserError
  // when one of them cannot be created, or the parent must exist and does not.
  explicit DirectoryTransaction(const std::filesystem::path& target,
                                Parent parent = Parent::create);

  // The directory into which files are to be written.
  const std::filesystem::path& staging() const { return staging_; }
  const std::filesystem::path& target() const { return target_; }

  enum class IfExists { fail, replace };
  // Lists and syncs every file of the staging directory and renames it. An existing target is a
  // UserError, or is replaced in one step. A replaced folder that is as Snug wrote it is removed;
  // any other is kept as NAME.kept-1 (or the next number).
  void commit(IfExists if_exists = IfExists::fail);

 private:
  std::filesystem::path target_;
  StagingFolder folder_;
  std::filesystem::path staging_;
  bool committed_ = false;
};

// Removes a directory; for other processes it disappears in one step. A process killed meanwhile
// leaves a leftover. Throws UserError when that cannot be done.
void remove_directory(const std::filesystem::path& directory);

}  // namespace snug::formats
