#include "backends/cuda/cuda_backend.h"

#include <unistd.h>

#include <algorithm>

#include "backends/cuda/arena.h"
#include "backends/cuda/kind_functions.h"
#include "backends/dispatch.h"
#include "backends/operation_checks.h"
#include "base/error.h"

namespace snug::backends::cuda {
bool has_device() {
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess && count > 0) return true;
  cudaGetLastError();
  return false;
}

CudaBackend::CudaBackend(const BackendOptions& options)
    : context_(std::make_unique<CudaContext>()),
      device_budget_bytes_(options.device_memory_bytes) {}

CudaBackend::~CudaBackend() = default;

std::string CudaBackend::library_versions() const {
  const Device& device = context_->device;
  return fmt::format("CUDA runtime {}, driver {}, cuBLASLt {}, compute capability {}",
                     device.runtime_version, device.driver_version, context_->cublas_lt.version(),
                     device.compute_capability);
}

int64_t CudaBackend::capacity_bytes(program::Space space) const {
  if (space != program::Space::device)
    return int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  return device_budget_bytes_ > 0 ? device_budget_bytes_ : free_device_bytes();
}

bool CudaBackend::runs(const program::OperationView& view) const {
  return has_known_types(view) &&
         dispatch<bool>(view.operation.attributes, [&](const auto& attributes) {
           return supports(attributes, view, *context_);
         });
}

program::Workspace CudaBackend::workspace(const program::OperationView& view) const {
  const auto bytes = dispatch<int64_t>(view.operation.attributes, [&](const auto& attributes) {
    return workspace_bytes(attributes, view, *context_);
  });
  return {.bytes = bytes, .exact = true};
}

// A chunk of logits is f32: 2048 rows of a vocabulary of 128,256 are 1 GiB, and its products run at
// the rate of large ones.
int64_t CudaBackend::loss_chunk_rows(int64_t, int64_t tokens) const {
  constexpr int64_t kRows = 2048;
  return std::min(kRows, tokens);
}

std::unique_ptr<Arena> CudaBackend::allocate(program::Space space, int64_t bytes) {
  return allocate_arena(space, bytes, context_->stream.get());
}

std::unique_ptr<Prepared> CudaBackend::prepare(const program::OperationView& view) {
  check_workspace(view, workspace(view).bytes, library_versions());
  return dispatch<std::unique_ptr<Prepared>>(
      view.operation.attributes,
      [&](const auto& attributes) { return cuda::prepare(attributes, view, *context_); });
}

void CudaBackend::run(const Invocation& invocation) {
  dispatch<void>(*invocation.attributes,
                 [&](const auto& attributes) { cuda::run(attributes, invocation, *context_); });
}

void CudaBackend::copy(void* destination, const void* source, int64_t bytes) {
  CUDA_CHECK(cudaMemcpyAsync(destination, source, static_cast<size_t>(bytes), cudaMemcpyDefault,
                             context_->stream.get()));
  synchronise();
}

void CudaBackend::synchronise() { CUDA_CHECK(cudaStreamSynchronize(context_->stream.get())); }

}  // namespace snug::backends::cuda
