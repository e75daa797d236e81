#include "backends/cuda/device/context.h"

#include <cstdlib>
#include <string>
#include <string_view>

#include "backends/cuda/kernels/has_kernels.h"
#include "base/build_id.h"
#include "base/error.h"

namespace snug::backends::cuda {
namespace {

// An attribute of the current device.
int attribute(cudaDeviceAttr which) {
  int device = 0;
  int value = 0;
  CUDA_CHECK(cudaGetDevice(&device));
  CUDA_CHECK(cudaDeviceGetAttribute(&value, which, device));
  return value;
}

// The architecture's name for nvcc.
std::string arch_of(int compute_capability) {
  return compute_capability == 90 ? "90a" : std::to_string(compute_capability);
}

}  // namespace

void Device::use() const { CUDA_CHECK(cudaSetDevice(index)); }

Device open_device(int number) {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess || count == 0)
    base::throw_user_error(
        "There is no CUDA device here ({}). Set 'backend: cpu', or run where nvidia-smi shows a "
        "card.",
        cudaGetErrorString(error));
  if (count > 1 && number >= count)
    base::throw_user_error(
        "Rank {} of this machine has no card: there are {} here. Start no more ranks on a machine "
        "than it has cards.",
        number, count);
  Device device;
  device.index = count == 1 ? 0 : number;
  device.use();
  Card& card = device.card;
  card.compute_capability = 10 * attribute(cudaDevAttrComputeCapabilityMajor) +
                            attribute(cudaDevAttrComputeCapabilityMinor);
  card.multiprocessors = attribute(cudaDevAttrMultiProcessorCount);
  card.shared_bytes = attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
  cudaDeviceProp properties{};
  CUDA_CHECK(cudaGetDeviceProperties(&properties, device.index));
  device.name = properties.name;
  CUDA_CHECK(cudaRuntimeGetVersion(&device.runtime_version));
  CUDA_CHECK(cudaDriverGetVersion(&device.driver_version));
  constexpr int kMinCapability = 80;
  if (card.compute_capability < kMinCapability)
    base::throw_user_error(
        "The CUDA device has compute capability {}.{}; Snug needs 8.0 or later. Set 'backend: "
        "cpu'.",
        card.compute_capability / 10, card.compute_capability % 10);
  if (!has_kernels())
    base::throw_user_error(
        "This snug has no kernels for {} (compute capability {}.{}). Build it on this machine with "
        "'make build', elsewhere with 'make build SNUG_CUDA_ARCHS={}' (with cmake "
        "-DSNUG_CUDA_ARCHS={}); or set 'backend: cpu'.",
        device.name, card.compute_capability / 10, card.compute_capability % 10,
        arch_of(card.compute_capability), arch_of(card.compute_capability));
  return device;
}

bool kernels_begin_early() {
  constexpr int kCapability = 90;  // needed for the instructions in device.cuh
  static const bool answer = 10 * attribute(cudaDevAttrComputeCapabilityMajor) >= kCapability &&
                             kernel_capability() >= kCapability && is_on("SNUG_CUDA_EARLY_KERNELS");
  return answer;
}

bool is_on(const char* variable) {
  const char* value = std::getenv(variable);
  if (value == nullptr) return true;
  const std::string_view text = value;
  if (text != "on" && text != "off")
    base::throw_user_error("{} is \"{}\"; expected on or off", variable, text);
  return text == "on";
}

CudaContext::CudaContext(const BackendOptions& options)
    : device(open_device(options.mesh != nullptr ? options.mesh->local_rank : 0)),
      collectives(options.mesh, options.timeout_seconds),
      host_work(options.make_host),
      cudnn(is_on("SNUG_CUDNN") ? open_cudnn() : nullptr),
      library_checks(library_versions() + ", build " + base::build_id()) {
  device.card.product_workspace_bytes = cublas_lt.workspace_bytes();
  device.card.cudnn = cudnn != nullptr;
  device.card.asks_cudnn = true;
}

std::string CudaContext::library_versions() const {
  const std::string ranks = collectives.library_version();
  return fmt::format("{}, CUDA runtime {}, driver {}, cuBLASLt {}, {}{}, compute capability {}",
                     device.name, device.runtime_version, device.driver_version,
                     cublas_lt.version(), cudnn ? "cuDNN " + cudnn->version() : "no cuDNN",
                     ranks.empty() ? "" : ", " + ranks, device.card.compute_capability);
}

// A single rank has no stream for collectives, and does them on the compute stream.
program::Channel CudaContext::channel_of(cudaStream_t queued_on) const {
  using program::Channel;
  const cudaStream_t work = stream.get();
  if (queued_on == work) return Channel::compute;
  for (const Channel channel : {Channel::host_to_device, Channel::device_to_host})
    if (queued_on == side_copies.stream_of(channel, work)) return channel;
  if (queued_on == host_work.stream()) return Channel::host;
  SNUG_CHECK(queued_on == collectives.stream(work), "something was queued on a stream of nobody");
  return Channel::interconnect;
}

SegmentAnswer& CudaContext::segment_plan(const SegmentAttention& shape, int64_t scratch_bytes) {
  const auto [found, is_new] = segment_plans_.try_emplace({shape, scratch_bytes});
  SegmentAnswer& answer = found->second;
  if (!is_new) return answer;
  try {
    std::shared_ptr<const SegmentPlan> plan = cudnn->plan(shape);
    if (plan->workspace_bytes() > scratch_bytes)
      base::throw_user_error("cuDNN {} asks for {} bytes of scratch for attention, the plan has {}",
                             cudnn->version(), plan->workspace_bytes(), scratch_bytes);
    answer.plan = std::move(plan);
  } catch (const base::UserError& error) {
    answer.refusal = error.what();
  }
  return answer;
}

}  // namespace snug::backends::cuda
