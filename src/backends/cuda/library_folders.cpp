#include "backends/cuda/library_folders.h"

#include <algorithm>
#include <system_error>

namespace snug::backends::cuda {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> subfolders(const fs::path& folder) {
  std::error_code unreadable;
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(folder, unreadable))
    if (entry.is_directory(unreadable)) found.push_back(entry.path());
  return found;
}

}  // namespace

std::vector<fs::path> python_library_folders(const std::string& environment,
                                             const std::string& library) {
  std::vector<fs::path> found;
  if (environment.empty()) return found;
  for (const fs::path& python : subfolders(fs::path(environment) / "lib"))
    for (const fs::path& package : subfolders(python / "site-packages" / "nvidia"))
      if (std::error_code unreadable; fs::exists(package / "lib" / library, unreadable))
        found.push_back(package / "lib");
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace snug::backends::cuda
