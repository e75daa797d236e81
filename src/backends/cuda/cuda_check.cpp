#include "backends/cuda/cuda_check.h"

#include "base/error.h"

namespace snug::backends::cuda {

void cuda_failed(const char* file, int line, const char* expression, cudaError_t error) {
  base::check_failed(file, line, expression,
                     fmt::format("{}: {}", cudaGetErrorName(error), cudaGetErrorString(error)));
}

}  // namespace snug::backends::cuda
