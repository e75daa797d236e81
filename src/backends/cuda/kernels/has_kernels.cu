#include "backends/cuda/kernels/has_kernels.h"

#include "backends/cuda/device.cuh"

namespace snug::backends::cuda {
namespace {

// All kernels are compiled for the same devices as this one.
__global__ void nothing() {}

}  // namespace

bool has_kernels() {
  cudaFuncAttributes attributes{};
  const bool found =
      cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(&nothing)) == cudaSuccess;
  cudaGetLastError();  // what is not there is no error
  return found;
}

int kernel_capability() {
  cudaFuncAttributes attributes{};
  if (cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(&nothing)) != cudaSuccess)
    return 0;
  return attributes.ptxVersion;
}

}  // namespace snug::backends::cuda
