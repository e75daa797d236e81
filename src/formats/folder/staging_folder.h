// NAME.snug-tmp-NUMBER next to a target NAME: where a folder is made ("new"), and where what is at
// the target waits ("old") while it is replaced in two steps. What belongs to Snug is known by a
// mark in it, .snug_staging, which is made first and removed last, and what is in use by a lock
// (flock) on the mark, which ends with its process. A name alone says nothing: users may give it,
// and numbers of processes mean something else in another container or on another machine. Not
// thread-safe.
#pragma once

#include <filesystem>

namespace snug::formats {

class StagingFolder {
 public:
  // Makes it in the target's folder, with the mark and nothing else, and holds it. Throws UserError
  // where that cannot be done.
  explicit StagingFolder(const std::filesystem::path& target);
  // Removes it as remove() does; a failure is said.
  ~StagingFolder();
  StagingFolder(const StagingFolder&) = delete;
  StagingFolder& operator=(const StagingFolder&) = delete;

  // Both are for the caller to make.
  std::filesystem::path fresh() const;
  std::filesystem::path old() const;

  // Puts an old folder back where there is no target. One whose replacement did not come from here,
  // or that is not as Snug wrote it, is kept as NAME.kept-1 (or the next number). All else is
  // removed. Throws UserError where one of that cannot be done; what could not be moved then stays.
  void remove();

 private:
  std::filesystem::path target_;
  std::filesystem::path path_;
  int lock_ = -1;
};

// TARGET.kept-1, or with the first number that is free.
std::filesystem::path kept_name(const std::filesystem::path& target);

// Removes, as StagingFolder::remove() does, those with a mark that nobody holds, and empty ones,
// whose process was killed before there was a mark. What fails is said. A parent that does not
// exist is fine.
void remove_leftovers(const std::filesystem::path& parent);

}  // namespace snug::formats
