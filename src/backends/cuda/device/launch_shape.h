// How many blocks of how many threads a kernel runs on, and its dynamic shared memory.
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
  // It may begin while the kernel before it ends: each of its threads calls
  // wait_for_kernels_before() before it reads or writes memory (device.cuh).
  bool begins_early = false;
  // What the kernel declares itself, where that matters next to shared_bytes: both together are at
  // most what the card gives a block.
  int32_t declared_bytes = 0;
};

// Whether the device in use has such launches: of compute capability 9 and later, unless the
// environment has SNUG_CUDA_EARLY_KERNELS=off. Throws UserError for another word there.
bool kernels_begin_early();

// A bound on the shared memory that a kernel declares next to what its launch gives it.
inline constexpr int32_t kDeclaredSharedBytes = 9 << 10;
inline constexpr uint32_t kMaxGridY = 65535;
inline constexpr int32_t kLanes = 32;  // of a warp

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace snug::backends::cuda
