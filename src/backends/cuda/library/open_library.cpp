#include "backends/cuda/library/open_library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <vector>

#include "backends/cuda/library/library_folders.h"

namespace snug::backends::cuda {
namespace {

std::vector<std::string> candidates(const std::string& name) {
  std::vector<std::string> paths = {name, fmt::format("{}/{}", SNUG_CUDA_LIBRARY_FOLDER, name)};
  for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"})
    if (const char* environment = std::getenv(variable); environment != nullptr)
      for (const auto& folder : python_library_folders(environment, name))
        paths.push_back(folder / name);
  return paths;
}

}  // namespace

void* open_library(const std::string& name) {
  for (const std::string& path : candidates(name))
    if (void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL); library != nullptr)
      return library;
  return nullptr;
}

void* find_function(void* library, const char* name) {
  void* address = dlsym(library, name);
  SNUG_CHECK(address != nullptr, "a library of CUDA has no function {}", name);
  return address;
}

}  // namespace snug::backends::cuda
