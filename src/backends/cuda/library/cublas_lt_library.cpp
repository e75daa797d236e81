#include <string>

#include "backends/cuda/library/cublas_lt.h"
#include "backends/cuda/library/open_library.h"
#include "backends/cuda/needs/card.h"
#include "base/error.h"

namespace snug::backends::cuda {
namespace {

void* open_cublas_lt() {
  const std::string name = fmt::format("libcublasLt.so.{}", CUBLAS_VER_MAJOR);
  if (void* library = open_library(name); library != nullptr) return library;
  base::throw_user_error(
      "{} is not found. Install the CUDA toolkit's cuBLAS, or activate a Python environment that "
      "has the package nvidia-cublas, or put the folder that has it into LD_LIBRARY_PATH.",
      name);
}

CublasLtFunctions load() {
  void* library = open_cublas_lt();
  CublasLtFunctions functions;
  find_function(library, "cublasLtCreate", functions.create);
  find_function(library, "cublasLtDestroy", functions.destroy);
  find_function(library, "cublasLtGetVersion", functions.version);
  find_function(library, "cublasLtGetStatusString", functions.status_string);
  find_function(library, "cublasLtMatmul", functions.matmul);
  find_function(library, "cublasLtMatmulDescCreate", functions.matmul_create);
  find_function(library, "cublasLtMatmulDescDestroy", functions.matmul_destroy);
  find_function(library, "cublasLtMatmulDescSetAttribute", functions.matmul_set);
  find_function(library, "cublasLtMatrixLayoutCreate", functions.layout_create);
  find_function(library, "cublasLtMatrixLayoutDestroy", functions.layout_destroy);
  find_function(library, "cublasLtMatmulPreferenceCreate", functions.preference_create);
  find_function(library, "cublasLtMatmulPreferenceDestroy", functions.preference_destroy);
  find_function(library, "cublasLtMatmulPreferenceSetAttribute", functions.preference_set);
  find_function(library, "cublasLtMatmulAlgoGetHeuristic", functions.find_algorithms);
  find_function(library, "cublasLtMatmulAlgoCheck", functions.check_algorithm);
  functions.workspace_bytes = kProductWorkspaceBytes;
  return functions;
}

}  // namespace

const CublasLtFunctions& cublas_lt_functions() {
  static const CublasLtFunctions functions = load();
  return functions;
}

}  // namespace snug::backends::cuda
