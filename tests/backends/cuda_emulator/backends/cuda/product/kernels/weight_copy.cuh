// Stands in for src/backends/cuda/product/kernels/weight_copy.cuh.
#pragma once

#include "backends/cuda/device/device.cuh"

namespace snug::backends::cuda {

inline void begin_weight_copy(void* shared, const void* global, bool zeros) {
  for (const void* address : {static_cast<const void*>(shared), global})
    if (reinterpret_cast<uintptr_t>(address) % 16 != 0)
      cuda_emulator::fail("a copy between addresses that are no multiples of 16");
  cuda_emulator::begin_copy(shared, global, 16, zeros);
}

}  // namespace snug::backends::cuda
