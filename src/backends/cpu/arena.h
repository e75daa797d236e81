// Memory of a CPU arena: one anonymous mapping whose pages are all touched, so that the resident
// size of the process is the plan's from the start.
#pragma once

#include <memory>

#include "backends/backend.h"

namespace snug::backends::cpu {

// Bytes that the system could give now without swapping (MemAvailable, or the control group's limit
// where that is lower).
int64_t available_memory_bytes();

// Throws UserError when the system has less than `bytes`, before a page is touched.
std::unique_ptr<Arena> map_arena(program::Space space, int64_t bytes);

}  // namespace snug::backends::cpu
