// What the log of a run says of each attention: who computes it, and why not the library.
#pragma once

#include "backends/cuda/device/context.h"
#include "program/ir/program.h"

namespace snug::backends::cuda {

// Notes a line about an attention, or its gradient, that is prepared; nothing of other operations,
// nor of those that read a cache, which own kernels always compute.
void note_attention(const program::OperationView& view, CudaContext& context);

}  // namespace snug::backends::cuda
