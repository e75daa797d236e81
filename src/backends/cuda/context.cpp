#include "backends/cuda/context.h"

#include "base/error.h"

namespace snug::backends::cuda {
namespace {

int attribute(cudaDeviceAttr which) {
  int value = 0;
  CUDA_CHECK(cudaDeviceGetAttribute(&value, which, 0));
  return value;
}

}  // namespace

Device open_device() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess || count == 0)
    base::throw_user_error(
        "There is no CUDA device here ({}). Set 'backend: cpu', or run where nvidia-smi shows a "
        "card.",
        cudaGetErrorString(error));
  CUDA_CHECK(cudaSetDevice(0));
  Device device;
  device.compute_capability = 10 * attribute(cudaDevAttrComputeCapabilityMajor) +
                              attribute(cudaDevAttrComputeCapabilityMinor);
  device.multiprocessors = attribute(cudaDevAttrMultiProcessorCount);
  device.shared_bytes = attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
  CUDA_CHECK(cudaRuntimeGetVersion(&device.runtime_version));
  CUDA_CHECK(cudaDriverGetVersion(&device.driver_version));
  constexpr int kLeastCapability = 80;
  if (device.compute_capability < kLeastCapability)
    base::throw_user_error(
        "The CUDA device has compute capability {}.{}; Snug needs 8.0 or later. Set 'backend: "
        "cpu'.",
        device.compute_capability / 10, device.compute_capability % 10);
  return device;
}

}  // namespace snug::backends::cuda
