#include "backends/cuda/device/arena.h"

#include <atomic>
#include <cstring>
#include <mutex>
#include <optional>
#include <vector>

#include "backends/cuda/device/cuda_check.h"
#include "backends/cuda/device/pinned_memory.h"
#include "base/error.h"

namespace snug::backends::cuda {
namespace {

constexpr double kMebibyte = 1 << 20;

// The amount by which the driver's free memory fell for arenas of this process; the driver counts
// whole processes, so this does too. Whoever allocates an arena holds the mutex, so that no other
// arena is included in the difference.
struct DeviceArenas {
  std::mutex mutex;
  std::atomic<int64_t> bytes = 0;
  std::atomic<int> live = 0;
};
DeviceArenas& device_arenas() {
  static DeviceArenas instance;
  return instance;
}

class DeviceArena : public Arena {
 public:
  // Requires that the mutex is held.
  DeviceArena(void* data, int64_t bytes, int64_t free_before)
      : Arena(program::Space::device),
        data_(data),
        bytes_(bytes),
        given_(free_before - device_memory().free_bytes) {
    device_arenas().bytes += given_;
    ++device_arenas().live;
  }
  ~DeviceArena() override {
    cudaFree(data_);
    device_arenas().bytes -= given_;
    --device_arenas().live;
  }
  std::byte* data() const override { return static_cast<std::byte*>(data_); }
  int64_t bytes() const override { return bytes_; }
  std::optional<int64_t> allocated_bytes() const override { return given_; }

 private:
  void* data_;
  int64_t bytes_;
  int64_t given_;
};

// The existing arenas of this process, in both spaces, the oldest first.
struct PinnedArenas {
  std::mutex mutex;
  std::vector<const Arena*> live;
};
PinnedArenas& pinned_arenas() {
  static PinnedArenas instance;
  return instance;
}

class PinnedArena : public Arena {
 public:
  PinnedArena(program::Space space, void* data, int64_t bytes)
      : Arena(space), data_(data), bytes_(bytes) {
    const std::lock_guard lock(pinned_arenas().mutex);
    pinned_arenas().live.push_back(this);
  }
  ~PinnedArena() override {
    {
      const std::lock_guard lock(pinned_arenas().mutex);
      std::erase(pinned_arenas().live, this);
    }
    cudaFreeHost(data_);
  }
  std::byte* data() const override { return static_cast<std::byte*>(data_); }
  int64_t bytes() const override { return bytes_; }

  // The driver does not report pinned memory, and the kernel has no count of pages that the driver
  // mapped itself, so calls that allocate it are counted. The oldest arena includes what belongs to
  // none, so that nothing is counted twice.
  std::optional<int64_t> allocated_bytes() const override {
    const std::lock_guard lock(pinned_arenas().mutex);
    if (pinned_arenas().live.front() != this) return pinned_bytes_at(data());
    int64_t bytes = pinned_bytes();
    for (const Arena* other : pinned_arenas().live)
      if (other != this) bytes -= pinned_bytes_at(other->data());
    return bytes;
  }

 private:
  void* data_;
  int64_t bytes_;
};

[[noreturn]] void refuse(program::Space space, int64_t bytes, cudaError_t error) {
  cudaGetLastError();  // clears the error, since the caller may go on
  const bool on_device = space == program::Space::device;
  base::throw_user_error(
      "The system refused {:.1f} MiB of {} memory ({}). Close other programs that use {}, or lower "
      "{} to what is free and let 'snug plan' name the cheapest change.",
      static_cast<double>(bytes) / kMebibyte, program::name_of(space), cudaGetErrorName(error),
      on_device ? "the card" : "much memory", on_device ? "device_memory" : "host_memory");
}

}  // namespace

DeviceMemory device_memory() {
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  CUDA_CHECK(cudaMemGetInfo(&free_bytes, &total_bytes));
  return {static_cast<int64_t>(free_bytes), static_cast<int64_t>(total_bytes),
          device_arenas().bytes, device_arenas().live > 0};
}

std::unique_ptr<Arena> allocate_arena(program::Space space, int64_t bytes, cudaStream_t stream) {
  const bool on_device = space == program::Space::device;
  void* data = nullptr;
  const auto size = static_cast<size_t>(bytes);
  std::unique_lock<std::mutex> counting;
  if (on_device) counting = std::unique_lock(device_arenas().mutex);
  const int64_t free_before = on_device ? device_memory().free_bytes : 0;
  if (size > 0) {
    const cudaError_t error =
        on_device ? cudaMalloc(&data, size) : cudaHostAlloc(&data, size, cudaHostAllocDefault);
    if (error != cudaSuccess) refuse(space, bytes, error);
    if (on_device) {
      CUDA_CHECK(cudaMemsetAsync(data, 0, size, stream));
      CUDA_CHECK(cudaStreamSynchronize(stream));
    } else {
      std::memset(data, 0, size);
    }
  }
  if (on_device) return std::make_unique<DeviceArena>(data, bytes, free_before);
  return std::make_unique<PinnedArena>(space, data, bytes);
}

}  // namespace snug::backends::cuda
