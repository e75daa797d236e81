// Decoding: from an operation to the kernels that split its keys over several blocks.
#pragma once

#include "backends/backend.h"
#include "backends/cuda/context.h"
#include "backends/cuda/kernels/attention.h"

namespace snug::backends::cuda {

// Queues the attention of `segments` in as many parts as it was decided (needs/attention_splits.h).
void run_in_splits(const program::Attention& attention, const RangesRun& segments,
                   const Invocation& invocation, CudaContext& context);

}  // namespace snug::backends::cuda
