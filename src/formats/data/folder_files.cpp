#include "formats/data/folder_files.h"

#include <algorithm>
#include <set>
#include <system_error>

#include "base/error.h"
#include "base/file.h"
#include "formats/folder/run_mark.h"

namespace snug::formats {
namespace {

namespace fs = std::filesystem;

class FilesWalk {
 public:
  FilesWalk(const fs::path& root, const FolderWalk& walk) : root_(root), walk_(walk) {}

  void add(const fs::path& folder, const std::string& prefix, int depth) {
    std::error_code error;
    // Listing tells of an error.
    if (!seen_.insert(fs::canonical(folder, error)).second) return;
    std::vector<fs::directory_entry> entries = base::list_folder(folder);
    std::ranges::sort(entries);
    for (const auto& entry : entries)
      add_entry(entry, prefix + entry.path().filename().string(), depth);
  }

  std::vector<std::string> found;

 private:
  void add_entry(const fs::directory_entry& entry, const std::string& name, int depth) {
    constexpr int64_t kMostEntries = 500'000;
    if (++entries_ > kMostEntries)
      base::throw_user_error("{} holds more than {} files and folders; name the folder of the data",
                             root_.string(), kMostEntries);
    std::error_code error;
    const bool is_folder = entry.is_directory(error);
    if (is_passed_over(entry.path(), is_folder)) return;
    if (is_folder) {
      if (depth != 1) add(entry.path(), name + "/", depth == 0 ? 0 : depth - 1);
    } else if (entry.is_regular_file(error) || (entry.is_symlink(error) && !entry.exists(error))) {
      found.push_back(name);
    }
  }

  bool is_passed_over(const fs::path& path, bool is_folder) const {
    const std::string name = path.filename().string();
    if (is_folder && base::is_there(path / kRunMark)) return true;
    return !walk_.hidden && (name.starts_with('.') || (is_folder && name.starts_with("__")));
  }

  const fs::path& root_;
  const FolderWalk& walk_;
  std::set<fs::path> seen_;
  int64_t entries_ = 0;
};

}  // namespace

std::vector<std::string> folder_files(const fs::path& folder, const FolderWalk& walk) {
  FilesWalk all(folder, walk);
  all.add(folder, "", walk.depth);
  std::ranges::sort(all.found);
  return std::move(all.found);
}

}  // namespace snug::formats
