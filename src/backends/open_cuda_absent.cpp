#include "backends/open_cuda.h"
#include "base/error.h"

namespace snug::backends {

std::unique_ptr<Backend> open_cuda(const BackendOptions&) {
  base::throw_user_error(
      "This build has no CUDA backend. Set 'backend: cpu', or build again where the CUDA toolkit, "
      "12.8 or later, is installed (docs/cuda.md).");
}

int count_cuda_devices() { return 0; }

}  // namespace snug::backends
