// Measures how fast ranks exchange what training steps exchange: an all_gather, a reduce_scatter
// and an all_reduce over all ranks, from sizes at which only latency counts to sizes at which only
// bandwidth counts. Also measures how fast each rank moves its memory while all others do the same.
#pragma once

#include <cstdint>
#include <vector>

#include "backends/backend.h"
#include "comm/communicator.h"
#include "plan/time/rates.h"

namespace snug::bench {

struct LinkGrid {
  // The bytes that a rank sends, rounded to whole elements on all ranks; each size doubles the one
  // before.
  int64_t least_bytes = 8;
  int64_t most_bytes = int64_t{64} << 20;
  int nodes = 1;  // the number of machines that the ranks are spread over
};

// A collective: all ranks of the backend's mesh call it at the same time; `all` connects all of
// them. Returns the same samples on each rank, smaller sizes of a kind first: the time of a
// collective of fp32 tensors as the backend runs it, from its begin to the end of its await, with
// nothing running next to it. The slowest rank determines the time; a sample is the median of
// several. Throws UserError where the backend has no such operations, and where another rank stops.
std::vector<plan::RateSample> link_rates(backends::Backend& backend, comm::Communicator& all,
                                         const LinkGrid& grid = {});

// A collective as above, for backends that compute on CPUs. Returns the same sample on each rank:
// an update of weights that all ranks do at once. The slowest rank determines the time; the fastest
// of several runs counts.
plan::RateSample rank_memory_rate(backends::Backend& backend, comm::Communicator& all);

}  // namespace snug::bench
