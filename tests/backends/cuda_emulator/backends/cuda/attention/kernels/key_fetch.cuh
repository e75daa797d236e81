// Stands in for src/backends/cuda/attention/kernels/key_fetch.cuh.
#pragma once

#include "device_memory.h"
#include "library_calls.h"

namespace snug::backends::cuda {

inline void fetch_to_cache(const void* address) {
  if (!cuda_emulator::is_device_memory(address, 1))
    cuda_emulator::fail("a fetch to the cache of what is no device memory");
  ++cuda_emulator::cache_fetches;
}

}  // namespace snug::backends::cuda
