// Finds cuBLASLt: where the loader looks (LD_LIBRARY_PATH, the distribution), then beside the
// toolkit that Snug was built with, then in the Python environment that is active.
#include <dlfcn.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "backends/cuda/cublas_lt.h"
#include "backends/cuda/library_folders.h"
#include "backends/cuda/needs/card.h"
#include "base/error.h"

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

void* open_library() {
  const std::string name = fmt::format("libcublasLt.so.{}", CUBLAS_VER_MAJOR);
  for (const std::string& path : candidates(name))
    if (void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL); library != nullptr)
      return library;
  base::throw_user_error(
      "{} is not found. Install the CUDA toolkit's cuBLAS, or activate a Python environment that "
      "has the package nvidia-cublas, or put the folder that has it into LD_LIBRARY_PATH.",
      name);
}

template <typename Function>
void find(void* library, const char* name, Function& function) {
  void* address = dlsym(library, name);
  SNUG_CHECK(address != nullptr, "cuBLASLt has no function {}", name);
  function = reinterpret_cast<Function>(address);
}

CublasLtFunctions load() {
  void* library = open_library();
  CublasLtFunctions functions;
  find(library, "cublasLtCreate", functions.create);
  find(library, "cublasLtDestroy", functions.destroy);
  find(library, "cublasLtGetVersion", functions.version);
  find(library, "cublasLtGetStatusString", functions.status_string);
  find(library, "cublasLtMatmul", functions.matmul);
  find(library, "cublasLtMatmulDescCreate", functions.matmul_create);
  find(library, "cublasLtMatmulDescDestroy", functions.matmul_destroy);
  find(library, "cublasLtMatmulDescSetAttribute", functions.matmul_set);
  find(library, "cublasLtMatrixLayoutCreate", functions.layout_create);
  find(library, "cublasLtMatrixLayoutDestroy", functions.layout_destroy);
  find(library, "cublasLtMatmulPreferenceCreate", functions.preference_create);
  find(library, "cublasLtMatmulPreferenceDestroy", functions.preference_destroy);
  find(library, "cublasLtMatmulPreferenceSetAttribute", functions.preference_set);
  find(library, "cublasLtMatmulAlgoGetHeuristic", functions.find_algorithms);
  functions.workspace_bytes = kProductWorkspaceBytes;
  return functions;
}

}  // namespace

const CublasLtFunctions& cublas_lt_functions() {
  static const CublasLtFunctions functions = load();
  return functions;
}

}  // namespace snug::backends::cuda
