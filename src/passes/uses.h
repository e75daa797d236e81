// Which operations read and write each tensor of a program.
#pragma once

#include <cstdint>
#include <vector>

#include "program/ir/program.h"

namespace snug::passes {

struct Uses {
  // The operations that use each owner of bytes or a view of it: ascending indices into the
  // operation list.
  std::vector<std::vector<int32_t>> readers;  // operations that read or update
  std::vector<std::vector<int32_t>> writers;  // operations that write or update
};

Uses find_uses(const program::Program& program);

// For each owner of bytes, the last operation that touches the tensor or a view of it; -1 if none
// does.
std::vector<int32_t> last_touch_of_owner(const program::Program& program);

// The program without the operations that a rewrite made superfluous, which have a flag set.
program::Program without(program::Program program, const std::vector<bool>& removed);

}  // namespace snug::passes
