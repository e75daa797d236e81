// How much an operation does, where a batch decides it. One function a kind, in its file under
// kinds/, turns the values of the operands that the kind calls its extents, or what a plan expects
// of them, into an amount: the clock prices it, backends do it, and traces note it.
//
// Pure functions.
#pragma once

#include "program/ir/program.h"
#include "program/work/batch_bounds.h"

namespace snug::program {

struct Extent {
  // Rows that carry loss; rows of a cache that are written; of attention the queries in segments.
  double rows = 0;
  // These three are of attention: the rows of keys (and of values) that some query sees, the pairs
  // of a query and a key that it sees, and the keys of a segment, averaged over all queries.
  double keys = 0;
  double pairs = 0;
  double mean_segment_tokens = 0;
  bool operator==(const Extent&) const = default;
};

// All zero for a kind that names no extents: it does what its shapes say.
Extent extent_of(const OperationView& view, const BatchBounds& bounds);
// The most that a batch may ask for.
inline Extent capacity_of(const OperationView& view) { return extent_of(view, {}); }

}  // namespace snug::program
