// Memory of a CUDA arena: one allocation on the device, or one of pinned host memory.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>

#include "backends/backend.h"

namespace snug::backends::cuda {

// Bytes that the device could give now.
int64_t free_device_bytes();

// Throws UserError when the device, or the host for its spaces, has not that much. The memory is
// zero. Host spaces are both pinned: copies run beside kernels.
std::unique_ptr<Arena> allocate_arena(program::Space space, int64_t bytes, cudaStream_t stream);

}  // namespace snug::backends::cuda
