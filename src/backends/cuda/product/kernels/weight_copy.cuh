// How weights reach shared memory in decoding. The emulator replaces this file by one with the same
// path.
#pragma once

#include "backends/cuda/device/device.cuh"

namespace snug::backends::cuda {

// Begins to copy 16 bytes that are read once, or zeros, in which case `global` is not read;
// adjacent data is prefetched into the L2 cache. Both addresses must be multiples of 16. (PTX ISA,
// cp.async.)
__device__ inline void begin_weight_copy(void* shared, const void* global, bool zeros) {
  const int bytes = zeros ? 0 : 16;
  asm volatile(
      "cp.async.cg.shared.global.L2::256B [%0], [%1], 16, %2;" ::"r"(shared_address(shared)),
      "l"(global), "r"(bytes)
      : "memory");
}

}  // namespace snug::backends::cuda
