// Memory of a CUDA arena: one allocation on the device, or one of pinned host memory.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>

#include "backends/backend.h"

namespace snug::backends::cuda {

// What the driver says of the device now, and what of it the arenas of this process take.
struct DeviceMemory {
  int64_t free_bytes = 0;
  int64_t total_bytes = 0;
  int64_t arena_bytes = 0;
  int64_t outside_bytes() const { return total_bytes - free_bytes - arena_bytes; }
};
DeviceMemory device_memory();

// Throws UserError when the device, or the host for its spaces, has not that much. The memory is
// zero. Host spaces are both pinned: copies run next to kernels. What the driver has given to an
// arena of the device (Arena::allocated_bytes) counts all that was allocated there since, by arenas
// and by anything else.
std::unique_ptr<Arena> allocate_arena(program::Space space, int64_t bytes, cudaStream_t stream);

}  // namespace snug::backends::cuda
