#include "formats/folder/staging_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/console.h"
#include "base/error.h"
#include "base/file.h"
#include "base/temporary_file.h"
#include "formats/folder/file_list.h"

namespace snug::formats {
namespace {

namespace fs = std::filesystem;

using base::kStagingInfix;
constexpr const char* kMark = ".snug_staging";
constexpr const char* kOld = "old";
constexpr int kFree = -1;

// Releases a lock when it is destroyed.
class Lock {
 public:
  explicit Lock(int descriptor) : descriptor_(descriptor) {}
  ~Lock() {
    if (is_held()) ::close(descriptor_);
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

  bool is_held() const { return descriptor_ != kFree; }

 private:
  int descriptor_;
};

// The target of a staging folder; nothing if the name is not that of a staging folder.
std::optional<fs::path> target_of(const fs::path& path) {
  const std::string name = path.filename().string();
  const size_t at = name.rfind(kStagingInfix);
  if (at == std::string::npos || at == 0) return std::nullopt;
  const char* const first = name.data() + at + kStagingInfix.size();
  const char* const last = name.data() + name.size();
  int64_t number = 0;
  const auto [stop, error] = std::from_chars(first, last, number);
  if (error != std::errc() || stop != last || number <= 0) return std::nullopt;
  return path.parent_path() / name.substr(0, at);
}

bool names(const fs::path& path, int descriptor) {
  struct stat named = {};
  struct stat open = {};
  return ::lstat(path.c_str(), &named) == 0 && ::fstat(descriptor, &open) == 0 &&
         S_ISREG(open.st_mode) && named.st_dev == open.st_dev && named.st_ino == open.st_ino;
}

// Locks the opened mark; false if another process holds it or has removed it. On a file system
// without locks this succeeds, because there take_over cannot lock either.
bool hold(const fs::path& mark, int descriptor) {
  if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return false;
  return names(mark, descriptor);
}

// Creates the folder and its mark; kFree if the name is taken, or the folder was removed meanwhile.
int make_and_hold(const fs::path& path) {
  if (::mkdir(path.c_str(), 0777) != 0) {
    if (errno == EEXIST) return kFree;
    base::throw_system_error("create", path, errno);
  }
  const fs::path mark = path / kMark;
  // Network file systems grant locks only on files that are open for writing.
  const int descriptor =
      ::open(mark.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (descriptor < 0) {
    const int error = errno;
    ::rmdir(path.c_str());
    if (error == ENOENT) return kFree;
    base::throw_system_error("create", mark, error);
  }
  if (hold(mark, descriptor)) return descriptor;
  ::close(descriptor);
  return kFree;
}

// Locks a mark that its creator no longer holds; kFree if there is none.
int take_over(const fs::path& path) {
  const fs::path mark = path / kMark;
  const int descriptor = ::open(mark.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) return kFree;
  if (::flock(descriptor, LOCK_EX | LOCK_NB) == 0 && names(mark, descriptor)) return descriptor;
  ::close(descriptor);
  return kFree;
}

void move(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::rename(from, to, error);
  if (error)
    base::throw_user_error(
        "an earlier {} is in {}, and cannot be moved to {}: {}; move it there, or remove it",
        to.filename().string(), from.string(), to.string(), error.message());
}

void remove_tree(const fs::path& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) base::throw_system_error("remove", path, error.value());
}

void settle_old(const fs::path& path, const fs::path& target) {
  const fs::path old = path / kOld;
  if (!base::is_there(old)) return;
  if (!base::is_there(target)) {
    move(old, target);
  } else if (base::is_there(path / base::kStagedFolder) || foreign_entry(old)) {
    const fs::path kept = kept_name(target);
    move(old, kept);
    base::say("an earlier {} is kept as {}", target.string(), kept.string());
  } else {
    // Removal starts with a rename, since a folder that was removed in part would not be recognised
    // as Snug's under its old name.
    fs::rename(old, path / base::kStagedFolder);
  }
}

// Removes a locked staging folder. The mark is removed last, so that the folder remains
// recognisable as Snug's if the process is killed.
void settle(const fs::path& path, const fs::path& target) {
  try {
    settle_old(path, target);
  } catch (const fs::filesystem_error& failure) {
    base::throw_system_error("remove", path, failure.code().value());
  }
  remove_tree(path / base::kStagedFolder);
  remove_tree(path / kMark);
  if (::rmdir(path.c_str()) != 0 && errno != ENOENT)
    base::throw_system_error("remove", path, errno);
}

void remove_leftover(const fs::path& path, const fs::path& target) {
  const Lock lock(take_over(path));
  if (!lock.is_held()) {
    // Succeeds only for an empty folder.
    ::rmdir(path.c_str());
    return;
  }
  try {
    settle(path, target);
  } catch (const base::UserError& failure) {
    base::say("{}", failure.what());
  }
}

}  // namespace

StagingFolder::StagingFolder(const fs::path& target) : target_(target) {
  for (int64_t number = ::getpid(); lock_ == kFree; ++number) {
    path_ = target;
    path_ += fmt::format("{}{}", kStagingInfix, number);
    lock_ = make_and_hold(path_);
  }
}

StagingFolder::~StagingFolder() {
  try {
    remove();
  } catch (const base::UserError& failure) {
    base::say("{}", failure.what());
  }
}

fs::path StagingFolder::fresh() const { return path_ / base::kStagedFolder; }
fs::path StagingFolder::old() const { return path_ / kOld; }

void StagingFolder::remove() {
  if (lock_ == kFree) return;
  const Lock lock(std::exchange(lock_, kFree));
  settle(path_, target_);
}

fs::path kept_name(const fs::path& target) {
  for (int number = 1;; ++number) {
    fs::path kept = target;
    kept += fmt::format(".kept-{}", number);
    if (!base::is_there(kept)) return kept;
  }
}

void remove_leftovers(const fs::path& parent) {
  std::error_code error;
  if (!fs::is_directory(parent, error)) return;
  for (const auto& entry : base::list_folder(parent)) {
    const auto target = target_of(entry.path());
    if (target && fs::is_directory(entry.symlink_status(error)))
      remove_leftover(entry.path(), *target);
  }
}

}  // namespace snug::formats
