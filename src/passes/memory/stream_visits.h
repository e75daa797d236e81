// What the pass `stream` works from: where tensors lie, on which side (device or host) each
// operation runs, and the visits, the ranges of the list in which operations touch a tensor from
// the other side.
#pragma once

#include <cstdint>
#include <vector>

#include "passes/memory/stream.h"
#include "program/ir/program.h"

namespace snug::passes {

// Where tensors lie and where operations run.
struct StreamPlacement {
  const program::Program& program;
  const StreamOptions& options;
  const bool reaches_device;  // the host's processor is the device

  bool lies_there(program::TensorId id) const;
  // Whether it is a master or a moment that is placed in host memory.
  bool is_kept_there(program::TensorId id) const;
  // Whether the operation runs on the host: an optimizer whose state lies there or, where the
  // host's processor is the device, an operation that reads its operands in place.
  bool is_on_host(const program::Operation& operation) const;
  // Whether the operation touches the tensor where it lies; `on_host` says on which side the
  // operation runs.
  bool touches_in_place(const program::Operation& operation, bool on_host,
                        program::TensorId id) const;
};

// The operations [first, last] that work on one copy of a tensor. A visit ends with its layer, in
// either direction, unless a collective on the tensor has begun and has not been awaited.
struct StreamVisit {
  program::TensorId home = program::kNone;
  int32_t first = -1;
  int32_t last = -1;
  int32_t earliest = 0;     // the first operation before which the copy may begin
  bool is_read = false;     // its previous values are needed
  bool is_changed = false;  // it is copied back
};

// The visits in the order of their first operations.
std::vector<StreamVisit> find_visits(const StreamPlacement& placement);

}  // namespace snug::passes
