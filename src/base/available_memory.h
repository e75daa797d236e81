// What the machine has left of its memory.
#pragma once

#include <cstdint>

namespace snug::base {

// Bytes that the system could give now without swapping (MemAvailable, or the control group's limit
// where that is lower).
int64_t available_memory_bytes();

}  // namespace snug::base
