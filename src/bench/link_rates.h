// Measures how fast ranks send each other what training steps do: an all_gather, a reduce_scatter
// and an all_reduce over all ranks, of sizes from one that is all latency to one that is all
// bandwidth; and how fast each moves its memory while all others do.
#pragma once

#include <cstdint>
#include <vector>

#include "backends/backend.h"
#include "comm/communicator.h"
#include "plan/time/rates.h"

namespace snug::bench {

struct LinkGrid {
  // Bytes that a rank sends, rounded to whole elements of all ranks; each doubles the one before.
  int64_t least_bytes = 8;
  int64_t most_bytes = int64_t{64} << 20;
  int nodes = 1;  // machines that the ranks are spread over
};

// All ranks of the backend's mesh call it at the same time; `all` is the communicator of all of
// them. It returns the same samples on each rank, smaller sizes of a kind first: a collective of
// fp32 tensors as the backend runs it, from its begin to the end of its await, with nothing next to
// it. It takes as long as it does on the slowest rank; a sample is the median of several. Throws
// UserError where the backend has no such operations, and where another rank stops.
std::vector<plan::RateSample> link_rates(backends::Backend& backend, comm::Communicator& all,
                                         const LinkGrid& grid = {});

// All ranks call it at the same time, as above, where processors compute. It returns the same
// sample on each rank: of an update of weights that all make at once, as long as the slowest rank
// takes; the fastest of several.
plan::RateSample rank_memory_rate(backends::Backend& backend, comm::Communicator& all);

}  // namespace snug::bench
