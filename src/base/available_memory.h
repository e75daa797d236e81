// What the machine has left of its memory.
#pragma once

#include <cstddef>
#include <cstdint>

namespace snug::base {

// Bytes that the system could give now without swapping (MemAvailable, or the control group's limit
// where that is lower).
int64_t available_memory_bytes();

// Throws std::bad_alloc where this process can map no such bytes more (ulimit -v): before a library
// asks for memory that does not look whether it was given any.
void require_address_space(size_t bytes);

}  // namespace snug::base
