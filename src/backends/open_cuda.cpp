#include "backends/open_cuda.h"

#include "backends/cuda/cuda_backend.h"

namespace snug::backends {

std::unique_ptr<Backend> open_cuda(const BackendOptions& options) {
  return std::make_unique<cuda::CudaBackend>(options);
}

int count_cuda_devices() { return cuda::count_devices(); }

}  // namespace snug::backends
