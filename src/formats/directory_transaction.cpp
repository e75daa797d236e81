#include "formats/directory_transaction.h"

#include "base/console.h"
#include "base/error.h"
#include "base/file.h"
#include "formats/file_list.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
#include <cerrno>
#include <charconv>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace snug::formats {
namespace {

namespace fs = std::filesystem;

// Names that nobody else gives, since what has them is removed.
constexpr std::string_view kStagingMark = ".snug-tmp-";
constexpr std::string_view kReplacedMark = ".snug-old-";

// "runs/x/" and "runs/x" are one target.
fs::path without_trailing_slash(fs::path path) {
  path = path.lexically_normal();
  return path.has_filename() ? path : path.parent_path();
}

fs::path marked(fs::path target, std::string_view mark) {
  target += fmt::format("{}{}", mark, ::getpid());
  return target;
}

struct Leftover {
  fs::path path;
  fs::path target;
  pid_t process = 0;
};

// What a process of that number left under this mark, or nothing when the name is not of that form.
std::optional<Leftover> as_leftover(const fs::path& path, std::string_view mark) {
  const std::string name = path.filename().string();
  const size_t at = name.rfind(mark);
  if (at == std::string::npos || at == 0) return std::nullopt;
  Leftover leftover{path, path.parent_path() / name.substr(0, at), 0};
  const char* const first = name.data() + at + mark.size();
  const char* const last = name.data() + name.size();
  const auto [stop, error] = std::from_chars(first, last, leftover.process);
  if (error != std::errc() || stop != last || leftover.process <= 0) return std::nullopt;
  return leftover;
}

// The staging directories of this process, so that a leftover of an earlier process of the same
// number is told apart from a transaction under way.
class OpenTransactions {
 public:
  void add(const fs::path& staging) {
    const std::lock_guard lock(mutex_);
    paths_.insert(fs::absolute(staging));
  }
  void remove(const fs::path& staging) {
    const std::lock_guard lock(mutex_);
    paths_.erase(fs::absolute(staging));
  }
  bool has(const fs::path& staging) {
    const std::lock_guard lock(mutex_);
    return paths_.contains(fs::absolute(staging));
  }

 private:
  std::mutex mutex_;
  std::set<fs::path> paths_;
};

OpenTransactions& open_transactions() {
  static OpenTransactions transactions;
  return transactions;
}

bool is_in_use(const Leftover& leftover, Others others) {
  if (leftover.process == ::getpid()) return open_transactions().has(leftover.path);
  if (others == Others::locked_out) return false;
  return ::kill(leftover.process, 0) == 0 || errno == EPERM;
}

bool is_there(const fs::path& path) { return fs::exists(fs::symlink_status(path)); }

// TARGET.kept-1, or with the first number that is free.
fs::path kept_name(const fs::path& target) {
  for (int number = 1;; ++number) {
    fs::path kept = target;
    kept += fmt::format(".kept-{}", number);
    if (!is_there(kept)) return kept;
  }
}

void sync_tree(const fs::path& directory) {
  for (const auto& entry : base::list_folder(directory)) {
    if (entry.is_directory()) {
      sync_tree(entry.path());
    } else if (entry.is_regular_file()) {
      base::File::open_for_reading(entry.path()).sync();
    }
  }
  base::sync_directory(directory);
}

// One step where the file system can exchange names; elsewhere two, between which a kill leaves the
// old directory under its .old-PID name, for remove_leftovers to put back.
void replace(const fs::path& staging, const fs::path& target) {
  const fs::path old = marked(target, kReplacedMark);
  if (::renameat2(AT_FDCWD, staging.c_str(), AT_FDCWD, target.c_str(), RENAME_EXCHANGE) == 0) {
    fs::rename(staging, old);
  } else {
    fs::rename(target, old);
    fs::rename(staging, target);
  }
  base::sync_directory(target.parent_path());
  fs::remove_all(old);
}

// What Snug did not write, or not as it is, stays.
void move_aside(const fs::path& target) {
  const fs::path kept = kept_name(target);
  fs::rename(target, kept);
  base::say("{} is not as Snug wrote it; it is kept as {}", target.string(), kept.string());
}

}  // namespace

DirectoryTransaction::DirectoryTransaction(const fs::path& target)
    : target_(without_trailing_slash(target)), staging_(marked(target_, kStagingMark)) {
  const fs::path parent = target_.has_parent_path() ? target_.parent_path() : ".";
  std::error_code error;
  fs::create_directories(parent, error);
  if (error) base::throw_system_error("create", parent, error.value());
  remove_leftovers(parent);
  fs::create_directory(staging_, error);
  if (error) base::throw_system_error("create", staging_, error.value());
  open_transactions().add(staging_);
}

DirectoryTransaction::~DirectoryTransaction() {
  std::error_code ignored;
  if (!committed_) fs::remove_all(staging_, ignored);
  open_transactions().remove(staging_);
}

void DirectoryTransaction::commit(IfExists if_exists) {
  SNUG_CHECK(!committed_, "{} is already committed", target_.string());
  try {
    write_file_list(staging_);
    sync_tree(staging_);
    const bool exists = is_there(target_);
    if (exists && if_exists == IfExists::fail)
      base::throw_user_error("{}: the folder already exists; choose another name or remove it",
                             target_.string());
    if (exists && !foreign_entry(target_)) {
      replace(staging_, target_);
    } else {
      if (exists) move_aside(target_);
      base::rename_durably(staging_, target_);
    }
  } catch (const fs::filesystem_error& failure) {
    base::throw_system_error("write", target_, failure.code().value());
  }
  committed_ = true;
}

void remove_directory(const fs::path& directory) {
  const fs::path doomed = marked(without_trailing_slash(directory), kStagingMark);
  std::error_code error;
  fs::remove_all(doomed, error);
  fs::rename(directory, doomed, error);
  if (!error) fs::remove_all(doomed, error);
  if (error) base::throw_system_error("remove", directory, error.value());
}

void remove_leftovers(const fs::path& parent, Others others) {
  std::error_code error;
  std::vector<Leftover> staged;
  std::vector<Leftover> replaced;
  if (!fs::is_directory(parent, error)) return;
  for (const auto& entry : base::list_folder(parent)) {
    if (auto leftover = as_leftover(entry.path(), kStagingMark)) staged.push_back(*leftover);
    if (auto leftover = as_leftover(entry.path(), kReplacedMark)) replaced.push_back(*leftover);
  }
  for (const Leftover& leftover : staged)
    if (!is_in_use(leftover, others)) fs::remove_all(leftover.path, error);
  for (const Leftover& leftover : replaced) {
    if (is_in_use(leftover, others)) continue;
    if (fs::exists(leftover.target)) {
      fs::remove_all(leftover.path, error);
    } else {
      fs::rename(leftover.path, leftover.target, error);
    }
  }
}

}  // namespace snug::formats
