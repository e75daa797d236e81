// A directory that appears whole or not at all: files are written into a folder next to it
// (formats/folder/staging_folder.h), listed (formats/folder/file_list.h) and synced, and the folder
// is renamed. A process killed at any instant leaves the old directory (or none) and a leftover
// that the next transaction for the same parent removes. Not thread-safe.
#pragma once

#include <filesystem>

#include "formats/folder/staging_folder.h"

namespace snug::formats {

class DirectoryTransaction {
 public:
  // A parent that must exist is not created again where it was just renamed or removed.
  enum class Parent { create, must_exist };
  // Creates the parent and the empty staging directory, after removing the leftovers of dead
  // processes. Without a commit nothing stays. Throws UserError when one cannot be created, or is
  // missing and must exist.
  explicit DirectoryTransaction(const std::filesystem::path& target,
                                Parent parent = Parent::create);

  // Write files here.
  const std::filesystem::path& staging() const { return staging_; }
  const std::filesystem::path& target() const { return target_; }

  enum class IfExists { fail, replace };
  // Lists and syncs every file of the staging directory and renames it. An existing target is a
  // UserError, or is replaced: in one step, and then removed, where it is as Snug wrote it, else it
  // is kept as NAME.kept-1 (or the next number).
  void commit(IfExists if_exists = IfExists::fail);

 private:
  std::filesystem::path target_;
  StagingFolder folder_;
  std::filesystem::path staging_;
  bool committed_ = false;
};

// Removes a directory, in one step for whoever lists its parent: a process that is killed meanwhile
// leaves a leftover. Throws UserError when that cannot be done.
void remove_directory(const std::filesystem::path& directory);

}  // namespace snug::formats
