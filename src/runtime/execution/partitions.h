// Which operations of a program a device may keep as a recording and repeat without the host.
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
  bool is_recordable = false;  // else the host queues it in every run
};

// Whether a device takes the extent of an operation, whose kind names extents, from the host
// (backends::Backend::takes_extent).
using TakesExtent = std::function<bool(const program::OperationView&)>;

// The program's operations in order, in as few partitions as the rules allow. The host queues in
// every run what copies from or to memory that the host writes or reads between runs, what is
// placed on the host or awaited there, what ranks do together, what does an amount of work that the
// batch decides and the host says, and both halves of a copy that such an operation comes between:
// a recording ends what it begins.
std::vector<Partition> partitions_of(const program::Program& program,
                                     const TakesExtent& takes_extent);

}  // namespace snug::runtime
