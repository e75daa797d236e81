// A directory that appears whole or not at all: files are written into NAME.tmp-PID beside it,
// synced, and the directory is renamed. A process killed at any instant leaves the old directory
// (or none) and a leftover that the next transaction for the same parent removes. Not thread-safe.
#pragma once

#include <filesystem>

namespace snug::formats {

class DirectoryTransaction {
 public:
  // Creates the parent and the empty staging directory, after removing the leftovers of dead
  // processes.
  explicit DirectoryTransaction(const std::filesystem::path& target);
  // Removes the staging directory unless committed.
  ~DirectoryTransaction();
  DirectoryTransaction(const DirectoryTransaction&) = delete;
  DirectoryTransaction& operator=(const DirectoryTransaction&) = delete;

  // Write files here.
  const std::filesystem::path& staging() const { return staging_; }
  const std::filesystem::path& target() const { return target_; }

  enum class IfExists { fail, replace };
  // Syncs every file and directory of the staging directory and renames it. An existing target is a
  // UserError, or is replaced in one step and then removed.
  void commit(IfExists if_exists = IfExists::fail);

 private:
  std::filesystem::path target_;
  std::filesystem::path staging_;
  bool committed_ = false;
};

// Removes NAME.tmp-PID and NAME.old-PID of processes that no longer run, and puts a NAME.old-PID
// back whose replacement never arrived. A directory that does not exist is fine.
void remove_leftovers(const std::filesystem::path& parent);

}  // namespace snug::formats
