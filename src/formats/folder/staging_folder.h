// NAME.snug-tmp-NUMBER next to a target NAME: a folder in which the new target is made ("new"), and
// in which the previous target is kept ("old") while it is replaced in two steps. A staging folder
// of Snug is recognised by a mark in it, .snug_staging, which is created first and removed last.
// One that is in use is recognised by a lock (flock) on the mark, which ends with its process. The
// name alone proves nothing: users may choose it too, and process numbers mean something else in
// another container or on another machine. Not thread-safe.
#pragma once

#include <filesystem>

namespace snug::formats {

class StagingFolder {
 public:
  // Creates it in the target's folder, containing only the mark, and locks it. Throws UserError if
  // that fails.
  explicit StagingFolder(const std::filesystem::path& target);
  // Calls remove(), and reports a failure.
  ~StagingFolder();
  StagingFolder(const StagingFolder&) = delete;
  StagingFolder& operator=(const StagingFolder&) = delete;

  // Paths in the folder, which the caller is to create.
  std::filesystem::path fresh() const;
  std::filesystem::path old() const;

  // Moves an old target back if there is no target. An old target that was not replaced from this
  // folder, or that is not as Snug wrote it, is kept as NAME.kept-1 (or the next number).
  // Everything else is removed. Throws UserError if one of these steps fails; what could not be
  // moved then stays.
  void remove();

 private:
  std::filesystem::path target_;
  std::filesystem::path path_;
  int lock_ = -1;
};

// TARGET.kept-1, or the name with the first free number.
std::filesystem::path kept_name(const std::filesystem::path& target);

// Removes, as StagingFolder::remove() does, staging folders whose mark is not locked, and empty
// ones, whose process was killed before it made the mark. Failures are reported. The parent need
// not exist.
void remove_leftovers(const std::filesystem::path& parent);

}  // namespace snug::formats
