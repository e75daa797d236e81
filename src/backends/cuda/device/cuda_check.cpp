#include "backends/cuda/device/cuda_check.h"

#include "base/error.h"

namespace snug::backends::cuda {

void cuda_failed(const char* file, int line, const char* expression, cudaError_t error) {
  base::check_failed(file, line, expression,
                     fmt::format("{}: {}", cudaGetErrorName(error), cudaGetErrorString(error)));
}

void no_memory_for(const char* what) {
  cudaGetLastError();  // clears the error
  base::throw_user_error(
      "The card has no memory left for {}, which the plan has kept free; another program has taken "
      "it. Free it and start again.",
      what);
}

}  // namespace snug::backends::cuda
