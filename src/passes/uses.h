// Who reads and writes what in a program: the facts that rewrites ask for.
#pragma once

#include <cstdint>
#include <vector>

#include "program/ir/program.h"

namespace snug::passes {

struct Uses {
  // The operations that use each owner of bytes, its views included: indices into the operation
  // list, ascending.
  std::vector<std::vector<int32_t>> readers;  // reads and updates
  std::vector<std::vector<int32_t>> writers;  // writes and updates
};

Uses find_uses(const program::Program& program);

// For each owner of bytes, the last operation that touches the tensor or a view of it; -1 if none
// does.
std::vector<int32_t> last_touch_of_owner(const program::Program& program);

// The program minus the operations that a rewrite made superfluous, one flag for each.
program::Program without(program::Program program, const std::vector<bool>& removed);

}  // namespace snug::passes
