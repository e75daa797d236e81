#include "backends/cuda/device/pinned_memory.h"

#include <cuda_runtime_api.h>

#include <map>
#include <mutex>

namespace snug::backends::cuda {
namespace {

struct Pinned {
  std::mutex mutex;
  std::map<const void*, int64_t> bytes_at;
  int64_t bytes = 0;
};
Pinned& pinned() {
  static Pinned instance;
  return instance;
}

}  // namespace

int64_t pinned_bytes() {
  const std::lock_guard lock(pinned().mutex);
  return pinned().bytes;
}

int64_t pinned_bytes_at(const void* data) {
  const std::lock_guard lock(pinned().mutex);
  const auto found = pinned().bytes_at.find(data);
  return found == pinned().bytes_at.end() ? 0 : found->second;
}

// The names are defined by the linker's --wrap: calls go to __wrap_NAME, and __real_NAME is the
// original function.
extern "C" {
cudaError_t __real_cudaHostAlloc(void** data, size_t bytes, unsigned flags);
cudaError_t __real_cudaFreeHost(void* data);
cudaError_t __wrap_cudaHostAlloc(void** data, size_t bytes, unsigned flags);
cudaError_t __wrap_cudaFreeHost(void* data);

cudaError_t __wrap_cudaHostAlloc(void** data, size_t bytes, unsigned flags) {
  const cudaError_t error = __real_cudaHostAlloc(data, bytes, flags);
  if (error != cudaSuccess) return error;
  const std::lock_guard lock(pinned().mutex);
  pinned().bytes_at[*data] = static_cast<int64_t>(bytes);
  pinned().bytes += static_cast<int64_t>(bytes);
  return error;
}

// The allocation is removed from the count before another thread may be given the same address.
cudaError_t __wrap_cudaFreeHost(void* data) {
  {
    const std::lock_guard lock(pinned().mutex);
    const auto found = pinned().bytes_at.find(data);
    if (found != pinned().bytes_at.end()) {
      pinned().bytes -= found->second;
      pinned().bytes_at.erase(found);
    }
  }
  return __real_cudaFreeHost(data);
}
}

}  // namespace snug::backends::cuda
