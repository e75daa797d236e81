#include "backends/cuda/library/library_folders.h"

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

void add_folders_with(const std::string& library, const fs::path& packages,
                      std::vector<fs::path>& found) {
  for (const fs::path& package : subfolders(packages))
    if (std::error_code unreadable; fs::exists(package / "lib" / library, unreadable))
      found.push_back(package / "lib");
}

}  // namespace

std::vector<fs::path> python_library_folders(const std::string& environment,
                                             const std::string& library) {
  std::vector<fs::path> found;
  if (environment.empty()) return found;
  for (const char* libraries : {"lib", "local/lib"})
    for (const fs::path& python : subfolders(fs::path(environment) / libraries)) {
      if (!python.filename().string().starts_with("python")) continue;
      for (const char* packages : {"site-packages", "dist-packages"})
        add_folders_with(library, python / packages / "nvidia", found);
    }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace snug::backends::cuda
