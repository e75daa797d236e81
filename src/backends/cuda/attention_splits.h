// Decoding: from an operation to the kernels that deal its keys to several blocks.
#pragma once

#include "backends/backend.h"
#include "backends/cuda/context.h"
#include "backends/cuda/kernels/attention.h"

namespace snug::backends::cuda {

// Queues the attention of `segments` where it is decoding (needs/attention_splits.h); else returns
// false, and nothing is queued.
bool run_in_splits(const RangesRun& segments, const Invocation& invocation, CudaContext& context);

}  // namespace snug::backends::cuda
