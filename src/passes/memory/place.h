// Places blocks of given sizes and life spans so that blocks which live at the same time do not
// overlap in bytes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace snug::passes {

struct LiveRange {
  int64_t bytes = 0;
  int32_t first = 0;  // time steps, both inclusive
  int32_t last = 0;
};

struct Placement {
  std::vector<int64_t> offsets;  // of each block
  int64_t bytes = 0;             // the highest end of a block
};

// The largest sum of bytes alive at one time, which no placement can undercut.
int64_t peak_live_bytes(std::span<const LiveRange> ranges);

// Tries several greedy orders (by size, by length of life, by area, by first use), each with the
// lowest and with the tightest fit, and returns the best; stops within a thousandth of the lower
// bound. Sizes must be multiples of the alignment.
Placement place(std::span<const LiveRange> ranges);

}  // namespace snug::passes
