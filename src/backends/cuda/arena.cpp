#include "backends/cuda/arena.h"

#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "backends/cuda/cuda_check.h"
#include "base/error.h"

namespace snug::backends::cuda {
namespace {

constexpr double kMebibyte = 1 << 20;

// The driver counts a process as a whole, so this does too.
std::atomic<int64_t> device_arena_bytes{0};

// The arenas of this process that live on one device, the oldest first, and what the driver said
// was free before there was one.
struct LiveArenas {
  std::vector<const Arena*> arenas;
  int64_t free_before = 0;
};
struct LiveDevices {
  std::mutex mutex;
  std::map<int, LiveArenas> at;  // by the device's number
};
LiveDevices& live_devices() {
  static LiveDevices instance;
  return instance;
}

int current_device() {
  int device = 0;
  CUDA_CHECK(cudaGetDevice(&device));
  return device;
}

class DeviceArena : public Arena {
 public:
  // `free_before`: what the driver said before the arena was allocated.
  DeviceArena(void* data, int64_t bytes, int64_t free_before)
      : Arena(program::Space::device), data_(data), bytes_(bytes), device_(current_device()) {
    device_arena_bytes += bytes;
    const std::lock_guard lock(live_devices().mutex);
    LiveArenas& live = live_devices().at[device_];
    if (live.arenas.empty()) live.free_before = free_before;
    live.arenas.push_back(this);
  }
  ~DeviceArena() override {
    cudaFree(data_);
    device_arena_bytes -= bytes_;
    const std::lock_guard lock(live_devices().mutex);
    std::erase(live_devices().at[device_].arenas, this);
  }
  std::byte* data() const override { return static_cast<std::byte*>(data_); }
  int64_t bytes() const override { return bytes_; }

  // By which the driver's free memory has fallen since the device had no arena of this process:
  // all that was allocated, by whatever code, each rounded up as the driver does, kernels that were
  // loaded and graphs, and what other processes took or gave back in between. The oldest arena
  // stands for all of it, so that nothing counts twice.
  std::optional<int64_t> allocated_bytes() const override {
    const std::lock_guard lock(live_devices().mutex);
    const LiveArenas& live = live_devices().at[device_];
    if (live.arenas.front() != this) return 0;
    const int before = current_device();
    CUDA_CHECK(cudaSetDevice(device_));
    const int64_t free_now = device_memory().free_bytes;
    CUDA_CHECK(cudaSetDevice(before));
    return live.free_before - free_now;
  }

 private:
  void* data_;
  int64_t bytes_;
  int device_;
};

class PinnedArena : public Arena {
 public:
  PinnedArena(program::Space space, void* data, int64_t bytes)
      : Arena(space), data_(data), bytes_(bytes) {}
  ~PinnedArena() override { cudaFreeHost(data_); }
  std::byte* data() const override { return static_cast<std::byte*>(data_); }
  int64_t bytes() const override { return bytes_; }
  // The driver does not say how much pinned memory there is. Where it has mapped the pages itself
  // the kernel has no count of them either.
  std::optional<int64_t> allocated_bytes() const override { return resident_bytes(data(), bytes_); }

 private:
  void* data_;
  int64_t bytes_;
};

[[noreturn]] void refuse(program::Space space, int64_t bytes, cudaError_t error) {
  cudaGetLastError();  // takes the error back: the caller may go on
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
  return {static_cast<int64_t>(free_bytes), static_cast<int64_t>(total_bytes), device_arena_bytes};
}

std::unique_ptr<Arena> allocate_arena(program::Space space, int64_t bytes, cudaStream_t stream) {
  const bool on_device = space == program::Space::device;
  void* data = nullptr;
  const auto size = static_cast<size_t>(bytes);
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
