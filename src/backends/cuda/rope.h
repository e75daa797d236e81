// Rotations and writes to a cache that one launch does (needs/few_rows.h).
#pragma once

#include <span>

#include "backends/backend.h"
#include "backends/cuda/context.h"

namespace snug::backends::cuda {

void run_rotations_together(std::span<const Invocation> list, CudaContext& context);

}  // namespace snug::backends::cuda
