// Instructions per element of those of Snug's CUDA kernels that arithmetic limits and not memory,
// counted in machine code for compute capability 9.0 (a test compares them with
// bench/results/kernels.md). They price operations on a card that was not measured.
//
// Pure functions.
#pragma once

#include "program/work/rate_key.h"

namespace snug::plan {

// Summed over all lanes. 0: they were not counted, and the operation is taken to be limited by the
// bytes that it moves or by its products.
double kernel_instructions(const program::RateKey& key);

// Instructions per pair of a query and a key of attention's kernels on tensor cores, with plain
// scores: of the forward pass, and of the gradient's kernels for queries, for keys and, where those
// have one of their own, for values.
struct AttentionLoops {
  double forward;
  double query;
  double key;
  double value;
};
inline constexpr double kWideHeads = 128;  // above it heads have the kernels for 256
AttentionLoops attention_loops(bool is_wide);

// The time of attention with capped or biased scores, relative to that with plain scores: on tensor
// cores the ratio of the instructions in the loop over keys, elsewhere 1.
double adjusted_attention_factor(const program::RateKey& key);

}  // namespace snug::plan
