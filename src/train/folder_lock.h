// A run's hold on its folder: a lock (flock) that keeps other runs out, and the knowledge of
// whether the folder is still where it was.
#pragma once

#include <filesystem>
#include <optional>

namespace snug::train {

// Held until it is destroyed. Where the file system has no locks nobody is kept out.
class FolderLock {
 public:
  // Nothing when another process holds the folder. Throws UserError when it cannot be opened.
  static std::optional<FolderLock> take(const std::filesystem::path& folder);

  // Whether a run holds the folder now. A run that takes it in the same few microseconds would be
  // refused; false where the folder cannot be opened.
  static bool is_taken(const std::filesystem::path& folder);

  FolderLock(FolderLock&& other) noexcept;
  FolderLock& operator=(FolderLock&& other) noexcept;
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  ~FolderLock();

  // From now on the folder counts as there only as long as this entry is in it: a folder that was
  // emptied is as lost as a removed one. The name must outlive the lock.
  void watch(const char* entry) { entry_ = entry; }
  // False when the path names nothing any more, or another folder, or the watched entry is gone.
  // Three system calls, no heap allocation.
  bool is_in_place() const;
  // Where the folder is now, whatever its path was; nothing when it was removed or
  // the watched entry is gone.
  std::optional<std::filesystem::path> present_path() const;

 private:
  bool holds_entry() const;

  FolderLock(std::filesystem::path path, int descriptor)
      : path_(std::move(path)), descriptor_(descriptor) {}

  std::filesystem::path path_;
  int descriptor_ = -1;
  const char* entry_ = nullptr;  // that is watched
};

}  // namespace snug::train
