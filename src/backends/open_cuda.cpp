#include "backends/open_cuda.h"

#include "backends/cuda/cuda_backend.h"

namespace snug::backends {

std::unique_ptr<Backend> open_cuda(const BackendOptions& options) {
  return std::make_unique<cuda::CudaBackend>(options);
}

bool has_cuda_device() { return cuda::has_device(); }

}  // namespace snug::backends
