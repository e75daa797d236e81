#include "formats/folder/directory_transaction.h"

#include <fcntl.h>
#include <stdio.h>

#include <cerrno>
#include <string>

#include "base/console.h"
#include "base/error.h"
#include "base/file.h"
#include "formats/folder/file_list.h"

namespace snug::formats {
namespace {

namespace fs = std::filesystem;

// Treats "runs/x/" and "runs/x" as the same target.
fs::path without_trailing_slash(fs::path path) {
  path = path.lexically_normal();
  return path.has_filename() ? path : path.parent_path();
}

// Removes what killed processes left in the parent folder; returns the target.
const fs::path& prepare_parent(const fs::path& target, DirectoryTransaction::Parent kind) {
  const fs::path parent = target.has_parent_path() ? target.parent_path() : ".";
  std::error_code error;
  if (kind == DirectoryTransaction::Parent::create) fs::create_directories(parent, error);
  if (error) base::throw_system_error("create", parent, error.value());
  if (!fs::is_directory(parent)) base::throw_system_error("create", target, ENOENT);
  remove_leftovers(parent);
  return target;
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

// Exchanges the two folders atomically where the file system supports that. Otherwise it takes two
// steps; a process killed between them leaves the old directory in the staging folder, from where
// remove_leftovers restores it.
void replace(const StagingFolder& folder, const fs::path& target) {
  const fs::path staging = folder.fresh();
  if (::renameat2(AT_FDCWD, staging.c_str(), AT_FDCWD, target.c_str(), RENAME_EXCHANGE) != 0) {
    fs::rename(target, folder.old());
    fs::rename(staging, target);
  }
  base::sync_directory(target.parent_path());
}

// A folder that Snug did not write, or that was changed since, is kept under another name.
void move_aside(const fs::path& target) {
  const fs::path kept = kept_name(target);
  fs::rename(target, kept);
  base::say("{} is not as Snug wrote it; it is kept as {}", target.string(), kept.string());
}

}  // namespace

DirectoryTransaction::DirectoryTransaction(const fs::path& target, Parent parent)
    : target_(without_trailing_slash(base::followed_link(target))),
      folder_(prepare_parent(target_, parent)),
      staging_(folder_.fresh()) {
  std::error_code error;
  fs::create_directory(staging_, error);
  if (error) base::throw_system_error("create", staging_, error.value());
}

void DirectoryTransaction::commit(IfExists if_exists) {
  SNUG_CHECK(!committed_, "{} is already committed", target_.string());
  try {
    write_file_list(staging_);
    sync_tree(staging_);
    const bool exists = base::is_there(target_);
    if (exists && if_exists == IfExists::fail)
      base::throw_user_error("{}: the folder already exists; choose another name or remove it",
                             target_.string());
    if (exists && !foreign_entry(target_)) {
      replace(folder_, target_);
    } else {
      if (exists) move_aside(target_);
      base::rename_durably(staging_, target_);
    }
  } catch (const fs::filesystem_error& failure) {
    base::throw_system_error("write", target_, failure.code().value());
  }
  committed_ = true;
  folder_.remove();
}

void remove_directory(const fs::path& directory) {
  const fs::path target = without_trailing_slash(directory);
  if (!base::is_there(target)) base::throw_system_error("remove", directory, ENOENT);
  StagingFolder doomed(target);
  std::error_code error;
  fs::rename(target, doomed.fresh(), error);
  if (error) base::throw_system_error("remove", directory, error.value());
  doomed.remove();
}

}  // namespace snug::formats
