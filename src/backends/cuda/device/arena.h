// Memory of a CUDA arena: one allocation on the device, or one of pinned host memory.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>

#include "backends/arena.h"

namespace snug::backends::cuda {

// What the driver says of the device now, and what of it the arenas of this process take: by how
// much the driver's free memory fell when they were allocated. The rest is the context's, that of
// kernels, libraries and graphs, of whatever else this process allocated, and of other programs.
struct DeviceMemory {
  int64_t free_bytes = 0;
  int64_t total_bytes = 0;
  int64_t arena_bytes = 0;
  bool has_arenas = false;
  int64_t outside_bytes() const { return total_bytes - free_bytes - arena_bytes; }
};
DeviceMemory device_memory();

// Throws UserError when the device, or the host for its spaces, has not that much. The memory is
// zero. Host spaces are both pinned: copies run next to kernels. What has been given to an arena
// (Arena::allocated_bytes) is on the device by how much the driver's free memory fell then, in
// whole blocks as it allocates; of pinned memory what this process was given (pinned_memory.h), the
// oldest arena's with all that is no arena's.
std::unique_ptr<Arena> allocate_arena(program::Space space, int64_t bytes, cudaStream_t stream);

}  // namespace snug::backends::cuda
