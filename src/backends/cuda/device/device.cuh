// The few parts of the device code that only nvcc understands. The emulator in
// tests/backends/cuda_emulator replaces this file by one with the same path; both compile
// everything else in kernels/.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "backends/cuda/device/cuda_check.h"
#include "backends/cuda/device/kernel_loading.h"
#include "backends/cuda/device/launch_count.h"
#include "backends/cuda/device/launch_shape.h"

namespace snug::backends::cuda {

// Queues a kernel, or only loads it (kernel_loading.h). Requires at least one block.
template <typename... Parameters, typename... Arguments>
void launch(void (*kernel)(Parameters...), const LaunchShape& shape, cudaStream_t stream,
            const Arguments&... arguments) {
  // 48 KiB minus what kernels declare themselves.
  constexpr int32_t kSharedBytesWithoutAsking = (48 << 10) - kDeclaredSharedBytes;
  const auto* function = reinterpret_cast<const void*>(kernel);
  if (KernelLoading::is_on()) load_kernel(function);
  if (shape.shared_bytes > kSharedBytesWithoutAsking)
    CUDA_CHECK(cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    shape.shared_bytes));
  if (KernelLoading::is_on()) return;
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(shape.grid.x, shape.grid.y, shape.grid.z);
  config.blockDim = dim3(shape.block.x, shape.block.y, shape.block.z);
  config.dynamicSmemBytes = static_cast<size_t>(shape.shared_bytes);
  config.stream = stream;
  config.attrs = &early;
  config.numAttrs = shape.begins_early && kernels_begin_early() ? 1 : 0;
  CUDA_CHECK_MEMORY("a kernel",
                    cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...));
  launch_count().add(stream);
}

// In a kernel that begins early, returns when all earlier kernels in the stream have ended and
// their writes can be read. In other kernels it returns at once.
__device__ inline void wait_for_kernels_before() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// Lets the next kernel begin, if it is one that begins early, as soon as every block has called
// this.
__device__ inline void let_next_kernel_begin() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// The block's dynamic shared memory: aligned to 16 bytes, undefined at first.
template <typename T>
__device__ T* shared_memory() {
  extern __shared__ uint4 snug_shared_memory[];
  return reinterpret_cast<T*>(snug_shared_memory);
}

// An address in the block's shared memory, and a word there: with 32-bit addresses, adding an
// offset takes one instruction.
__device__ inline uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}
__device__ inline uint32_t load_shared_word(uint32_t address) {
  uint32_t word = 0;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(word) : "r"(address));
  return word;
}

struct alignas(16) Vector16 {
  uint32_t word[4];
};

// Loads in one instruction. Requires an address that is a multiple of 16.
__device__ inline Vector16 load_vector(const void* address) {
  const uint4 bits = *static_cast<const uint4*>(address);
  return {{bits.x, bits.y, bits.z, bits.w}};
}
__device__ inline void store_vector(void* address, const Vector16& vector) {
  *static_cast<uint4*>(address) =
      make_uint4(vector.word[0], vector.word[1], vector.word[2], vector.word[3]);
}

// Stops the kernel, and with it the program at its next CUDA call.
__device__ inline void device_check(bool condition) {
  if (!condition) __trap();
}

}  // namespace snug::backends::cuda
