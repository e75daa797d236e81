// Placing intervals of given sizes so that those which overlap in time do not overlap in bytes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace snug::passes {

struct LiveRange {
  int64_t bytes = 0;
  int32_t first = 0;  // time steps, both ends included
  int32_t last = 0;
};

struct Placement {
  std::vector<int64_t> offsets;  // of each range
  int64_t bytes = 0;             // the highest end
};

// Largest sum of bytes alive at one time: no placement can be below it.
int64_t peak_live_bytes(std::span<const LiveRange> ranges);

// Greedy best-of-several orders: by size, by length of life, by area, each with lowest fit; stops
// within a thousandth of the lower bound. Sizes must be multiples of the alignment.
Placement place(std::span<const LiveRange> ranges);

}  // namespace snug::passes
