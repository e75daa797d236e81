// What the library's attention computes on this GPU, held against own kernels before a plan relies
// on it: a version that is wrong is left out, whatever its number, and one that nobody has seen is
// not taken on trust.
//
// A check runs one attention of the same form with own kernels and with the library, on random
// values: heads and keys of two groups, the job's segments up to 4096 tokens, among them one of a
// single token and, where batches may have them, some without tokens, and rows that belong to no
// segment. Outputs and scratch hold NaN before. Of each tensor and segment the difference may have
// 2 % of the norm. It takes the memory of these tensors while it runs, some milliseconds, and the
// time in which the library compiles its kernels; the answer is kept (library_checks.h).
#pragma once

#include <string>

#include "backends/cuda/device/context.h"
#include "program/ir/program.h"
#include "program/kinds/attention/attention.h"

namespace snug::backends::cuda {

// Why the library's results are not relied on; empty where they agree. Requires an operation that
// is assigned to the library, which has plans for it.
std::string why_unlike_own(const program::Attention& attention, const program::OperationView& view,
                           CudaContext& context);
std::string why_unlike_own(const program::AttentionGrad& grad, const program::OperationView& view,
                           CudaContext& context);

}  // namespace snug::backends::cuda
