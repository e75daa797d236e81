#include "backends/cuda/kernels/has_kernels.h"

#include "backends/cuda/device/device.cuh"

namespace snug::backends::cuda {
namespace {

// All kernels are compiled for the same architectures as this one.
__global__ void nothing() {}

}  // namespace

bool has_kernels() { return kernel_capability() > 0; }

int kernel_capability() {
  cudaFuncAttributes attributes{};
  const cudaError_t error =
      cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(&nothing));
  if (error == cudaErrorMemoryAllocation) no_memory_for("a kernel");
  cudaGetLastError();  // clears the error, since a missing kernel is not an error
  return error == cudaSuccess ? attributes.ptxVersion : 0;
}

}  // namespace snug::backends::cuda
