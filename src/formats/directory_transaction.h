// A directory that appears whole or not at all: files are written into NAME.snug-tmp-PID next to
// it, listed (formats/file_list.h) and synced, and the directory is renamed. A process killed at
// any instant leaves the old directory (or none) and a leftover that the next transaction for the
// same parent removes. Not thread-safe.
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
  // Lists and syncs every file of the staging directory and renames it. An existing target is a
  // UserError, or is replaced: in one step, and then removed, where it is as Snug wrote it, else it
  // is kept as NAME.kept-1 (or the next number).
  void commit(IfExists if_exists = IfExists::fail);

 private:
  std::filesystem::path target_;
  std::filesystem::path staging_;
  bool committed_ = false;
};

// Removes a directory, in one step for whoever lists its parent: a process that is killed meanwhile
// leaves a leftover. Throws UserError when that cannot be done.
void remove_directory(const std::filesystem::path& directory);

// Whether other processes may be writing into the same parent.
enum class Others { may_write, locked_out };

// Removes NAME.snug-tmp-PID and NAME.snug-old-PID of processes that no longer run or are locked
// out, and puts a NAME.snug-old-PID back whose replacement never arrived. A directory that does not
// exist is fine.
void remove_leftovers(const std::filesystem::path& parent, Others others = Others::may_write);

}  // namespace snug::formats
