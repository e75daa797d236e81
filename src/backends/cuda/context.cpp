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
  Card& card = device.card;
  card.compute_capability = 10 * attribute(cudaDevAttrComputeCapabilityMajor) +
                            attribute(cudaDevAttrComputeCapabilityMinor);
  card.multiprocessors = attribute(cudaDevAttrMultiProcessorCount);
  card.shared_bytes = attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
  cudaDeviceProp properties{};
  CUDA_CHECK(cudaGetDeviceProperties(&properties, 0));
  device.name = properties.name;
  CUDA_CHECK(cudaRuntimeGetVersion(&device.runtime_version));
  CUDA_CHECK(cudaDriverGetVersion(&device.driver_version));
  constexpr int kLeastCapability = 80;
  if (card.compute_capability < kLeastCapability)
    base::throw_user_error(
        "The CUDA device has compute capability {}.{}; Snug needs 8.0 or later. Set 'backend: "
        "cpu'.",
        card.compute_capability / 10, card.compute_capability % 10);
  return device;
}

}  // namespace snug::backends::cuda
