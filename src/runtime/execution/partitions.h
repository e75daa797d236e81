// Which operations of a program a device may record, and then repeat without the host.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "program/ir/program.h"

namespace snug::runtime {

// Operations [begin, end) of a program.
struct Partition {
  size_t begin = 0;
  size_t end = 0;
  bool is_recordable = false;  // false: the host queues it in every run
};

// Whether the backend needs an operation's extent from the host (backends::Backend::takes_extent).
// Only asked of kinds that have extents.
using TakesExtent = std::function<bool(const program::OperationView&)>;

// Divides the program's operations, in order, into as few partitions as the rules allow. The host
// must queue in every run: copies from or to memory that the host writes or reads between runs;
// operations that are placed on the host or awaited there; collectives of ranks; operations whose
// amount of work depends on the batch and is given by the host; and both halves of a copy that such
// an operation separates, since a recording must end every copy that it begins.
std::vector<Partition> partitions_of(const program::Program& program,
                                     const TakesExtent& takes_extent);

}  // namespace snug::runtime
