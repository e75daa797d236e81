#include "backends/cuda/arena.h"

#include <atomic>
#include <cstring>
#include <optional>

#include "backends/cuda/cuda_check.h"
#include "base/error.h"

namespace snug::backends::cuda {
namespace {

constexpr double kMebibyte = 1 << 20;

// The driver counts a process as a whole, so this does too.
std::atomic<int64_t> device_arena_bytes{0};

class DeviceArena : public Arena {
 public:
  DeviceArena(void* data, int64_t bytes, int64_t given_bytes)
      : Arena(program::Space::device), data_(data), bytes_(bytes), given_bytes_(given_bytes) {
    device_arena_bytes += bytes;
  }
  ~DeviceArena() override {
    cudaFree(data_);
    device_arena_bytes -= bytes_;
  }
  std::byte* data() const override { return static_cast<std::byte*>(data_); }
  int64_t bytes() const override { return bytes_; }
  std::optional<int64_t> allocated_bytes() const override { return given_bytes_; }

 private:
  void* data_;
  int64_t bytes_;
  // By which the driver's free memory fell: the arena, rounded up as the driver does, and what
  // other processes took or gave back in between.
  int64_t given_bytes_;
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
  if (on_device)
    return std::make_unique<DeviceArena>(data, bytes, free_before - device_memory().free_bytes);
  return std::make_unique<PinnedArena>(space, data, bytes);
}

}  // namespace snug::backends::cuda
