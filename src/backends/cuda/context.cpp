#include "backends/cuda/context.h"

#include <cstdlib>
#include <string_view>

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

bool is_on(const char* variable) {
  const char* value = std::getenv(variable);
  if (value == nullptr) return true;
  const std::string_view text = value;
  if (text != "on" && text != "off")
    base::throw_user_error("{} is \"{}\"; expected on or off", variable, text);
  return text == "on";
}

CudaContext::CudaContext() {
  if (is_on("SNUG_CUDNN")) cudnn = open_cudnn();
  device.card.product_workspace_bytes = cublas_lt.workspace_bytes();
  device.card.cudnn = cudnn != nullptr;
}

std::shared_ptr<const SegmentPlan> CudaContext::segment_plan(const SegmentAttention& shape) {
  std::shared_ptr<const SegmentPlan>& found = segment_plans_[shape];
  if (found == nullptr) found = cudnn->plan(shape);
  return found;
}

}  // namespace snug::backends::cuda
