// The memory that the machine has left.
#pragma once

#include <cstddef>
#include <cstdint>

namespace snug::base {

// The bytes that the system could hand out now without swapping: MemAvailable of /proc/meminfo, or
// what the control group's limit leaves where that is less.
int64_t available_memory_bytes();

// Throws std::bad_alloc where this process cannot map that many bytes more (ulimit -v). Call it
// before a library that does not check the result of its own allocations.
void require_address_space(size_t bytes);

}  // namespace snug::base
