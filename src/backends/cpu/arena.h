// Memory of a CPU arena: one anonymous mapping whose pages are all touched, so that the resident
// size of the process is the plan's from the start.
#pragma once

#include <memory>

#include "backends/arena.h"

namespace snug::backends::cpu {

// Throws UserError when the system has less than `bytes`, before a page is touched.
std::unique_ptr<Arena> map_arena(program::Space space, int64_t bytes);

}  // namespace snug::backends::cpu
