#include "train/folder_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/file.h"

namespace snug::train {
namespace {

namespace fs = std::filesystem;

// Whether the path names the open folder. One that cannot be asked about is taken to do so.
bool names(const fs::path& path, int descriptor) {
  struct stat named = {};
  struct stat open = {};
  if (::stat(path.c_str(), &named) != 0) return errno != ENOENT && errno != ENOTDIR;
  if (::fstat(descriptor, &open) != 0) return true;
  return named.st_dev == open.st_dev && named.st_ino == open.st_ino;
}

}  // namespace

std::optional<FolderLock> FolderLock::take(const fs::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) base::throw_system_error("open", folder, errno);
  const bool is_taken = ::flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  FolderLock lock(folder, descriptor);
  if (is_taken) return std::nullopt;
  return lock;
}

bool FolderLock::is_taken(const fs::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return false;
  const FolderLock shared(folder, descriptor);
  return ::flock(descriptor, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

FolderLock::FolderLock(FolderLock&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      entry_(other.entry_) {}

FolderLock& FolderLock::operator=(FolderLock&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(entry_, other.entry_);
  return *this;
}

FolderLock::~FolderLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool FolderLock::holds_entry() const {
  return entry_ == nullptr || ::faccessat(descriptor_, entry_, F_OK, AT_SYMLINK_NOFOLLOW) == 0 ||
         errno != ENOENT;
}

bool FolderLock::is_in_place() const { return names(path_, descriptor_) && holds_entry(); }

std::optional<fs::path> FolderLock::present_path() const {
  std::error_code error;
  const fs::path path = fs::read_symlink(fmt::format("/proc/self/fd/{}", descriptor_), error);
  if (error || !fs::exists(path, error) || !names(path, descriptor_) || !holds_entry())
    return std::nullopt;
  return path;
}

}  // namespace snug::train
