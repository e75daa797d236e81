// The memory of a CUDA arena: one allocation on the device, or one of pinned host memory.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>

#include "backends/arena.h"

namespace snug::backends::cuda {

// The driver's current numbers for the device, and how much of it this process's arenas take: the
// amount by which the driver's free memory fell when they were allocated. The rest belongs to the
// context, kernels, libraries and graphs, to other allocations of this process, and to other
// programs.
struct DeviceMemory {
  int64_t free_bytes = 0;
  int64_t total_bytes = 0;
  int64_t arena_bytes = 0;
  bool has_arenas = false;
  int64_t outside_bytes() const { return total_bytes - free_bytes - arena_bytes; }
};
DeviceMemory device_memory();

// Throws UserError when the device, or the host for its spaces, does not have enough memory. The
// memory is zeroed. Both host spaces are pinned, so that copies run in parallel with kernels.
// Arena::allocated_bytes of the result: on the device it is the amount by which the driver's free
// memory fell, which is a whole number of the driver's allocation blocks. For pinned memory it is
// what this process was given (pinned_memory.h); the oldest arena also counts pinned memory that
// belongs to no arena.
std::unique_ptr<Arena> allocate_arena(program::Space space, int64_t bytes, cudaStream_t stream);

}  // namespace snug::backends::cuda
