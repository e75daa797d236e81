// The number of blocks and threads of a kernel, and its dynamic shared memory.
#pragma once

#include <cstdint>

namespace snug::backends::cuda {

struct Extent3 {
  uint32_t x = 1;
  uint32_t y = 1;
  uint32_t z = 1;
};

struct LaunchShape {
  Extent3 grid;
  Extent3 block;
  int32_t shared_bytes = 0;
  // It may begin while the previous kernel is ending: each of its threads must call
  // wait_for_kernels_before() (device.cuh) before it writes memory, or reads any but what the
  // program marks `constant`.
  bool begins_early = false;
  // Static shared memory of the kernel, where it matters together with shared_bytes: their sum must
  // not exceed what the GPU gives a block.
  int32_t declared_bytes = 0;
};

// Whether the current device has such launches: compute capability 9.0 and later, unless the
// environment has SNUG_CUDA_EARLY_KERNELS=off. Throws UserError for any other value there.
bool kernels_begin_early();

// An upper bound for the static shared memory of any kernel.
inline constexpr int32_t kDeclaredSharedBytes = 9 << 10;
inline constexpr uint32_t kMaxGridY = 65535;
inline constexpr int32_t kLanes = 32;  // the threads in a warp

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace snug::backends::cuda
