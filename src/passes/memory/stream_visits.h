// What the pass `stream` works from: where tensors lie, on which side each operation works, and the
// visits, the ranges of the list in which operations touch a tensor from the side where it does
// not lie.
#pragma once

#include <cstdint>
#include <vector>

#include "passes/memory/stream.h"
#include "program/ir/program.h"

namespace snug::passes {

// Where tensors lie, and where operations work.
struct StreamPlacement {
  const program::Program& program;
  const StreamOptions& options;
  const bool reaches_device;  // the host's processor, which is the device's

  bool lies_there(program::TensorId id) const;
  // Whether an optimizer keeps it there: a master or a moment.
  bool is_kept_there(program::TensorId id) const;
  // Optimizers whose state lies there; where one processor does all, also what reads in place.
  bool is_on_host(const program::Operation& operation) const;
  // Whether the operation, which works on the host or not, touches the tensor where it lies.
  bool touches_in_place(const program::Operation& operation, bool on_host,
                        program::TensorId id) const;
};

// Operations [first, last] work on a copy of a tensor. A visit ends with its layer, in either
// direction, but not while a collective that has begun is not awaited.
struct StreamVisit {
  program::TensorId home = program::kNone;
  int32_t first = -1;
  int32_t last = -1;
  int32_t earliest = 0;     // before this operation the tensor does not have its values yet
  bool is_read = false;     // what it held before is needed
  bool is_changed = false;  // goes back
};

// The visits in the order of their first operations.
std::vector<StreamVisit> find_visits(const StreamPlacement& placement);

}  // namespace snug::passes
