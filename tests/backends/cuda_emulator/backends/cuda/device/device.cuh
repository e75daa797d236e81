// Stands in for src/backends/cuda/device/device.cuh: the same functions on the emulated device.
#pragma once

#include <cstdint>
#include <cstring>

#include "backends/cuda/device/kernel_loading.h"
#include "backends/cuda/device/launch_count.h"
#include "backends/cuda/device/launch_shape.h"
#include "creations.h"
#include "cuda_runtime.h"
#include "stream.h"

namespace snug::backends::cuda {

template <typename... Parameters, typename... Arguments>
void launch(void (*kernel)(Parameters...), const LaunchShape& shape, cudaStream_t stream,
            const Arguments&... arguments) {
  const auto* function = reinterpret_cast<const void*>(kernel);
  if (KernelLoading::is_on()) return load_kernel(function);
  if (!cuda_emulator::load_kernel(function)) no_memory_for("a kernel");
  if (cudaGetLastError() != cudaSuccess) cuda_emulator::fail("a launch after an error");
  int device = 0;
  cudaGetDevice(&device);
  if (stream != nullptr && stream->device != device)
    cuda_emulator::fail("a launch on another device's stream");
  const cuda_emulator::Grid grid{{shape.grid.x, shape.grid.y, shape.grid.z},
                                 {shape.block.x, shape.block.y, shape.block.z},
                                 shape.shared_bytes,
                                 shape.declared_bytes,
                                 shape.begins_early};
  cuda_emulator::submit(stream,
                        [=] { cuda_emulator::run_grid(grid, [&] { kernel(arguments...); }); });
  launch_count().add(stream);
}

// Kernels are run one after the other; one that begins early must have waited in every thread.
inline void wait_for_kernels_before() { cuda_emulator::note_wait(); }
inline void let_next_kernel_begin() { cuda_emulator::note_next_may_begin(); }

template <typename T>
T* shared_memory() {
  return reinterpret_cast<T*>(cuda_emulator::shared_memory());
}

inline uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(static_cast<const std::byte*>(pointer) - shared_memory<std::byte>());
}

inline uint32_t load_shared_word(uint32_t address) {
  uint32_t word = 0;
  std::memcpy(&word, shared_memory<std::byte>() + address, sizeof word);
  return word;
}

struct alignas(16) Vector16 {
  uint32_t word[4];
};

inline Vector16 load_vector(const void* address) {
  if (reinterpret_cast<uintptr_t>(address) % sizeof(Vector16) != 0)
    cuda_emulator::fail("a vector load from an address that is no multiple of 16");
  Vector16 vector;
  std::memcpy(&vector, address, sizeof vector);
  return vector;
}

inline void store_vector(void* address, const Vector16& vector) {
  if (reinterpret_cast<uintptr_t>(address) % sizeof(Vector16) != 0)
    cuda_emulator::fail("a vector store to an address that is no multiple of 16");
  std::memcpy(address, &vector, sizeof vector);
}

inline void device_check(bool condition) {
  if (!condition) __trap();
}

}  // namespace snug::backends::cuda
