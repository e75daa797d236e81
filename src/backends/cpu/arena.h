// The memory of a CPU arena: one anonymous mapping whose pages are all touched at once, so that the
// resident size of the process matches the plan from the start.
#pragma once

#include <memory>

#include "backends/arena.h"

namespace snug::backends::cpu {

// Throws UserError when the system has less than `bytes` left, before any page is touched.
std::unique_ptr<Arena> map_arena(program::Space space, int64_t bytes);

}  // namespace snug::backends::cpu
