// Resident memory of this process, from /proc/self/status.
#pragma once

#include <cstdint>

namespace snug::runtime {

struct ProcessMemory {
  int64_t resident_bytes = 0;       // VmRSS
  int64_t resident_peak_bytes = 0;  // VmHWM: the peak since the process started
};

// All zero where there is no /proc.
ProcessMemory process_memory();

// The bytes that the process will hold besides the arenas during a run without a rehearsal
// (rehearsal.h): what is resident now plus what libraries will add. Call it before anything is
// allocated.
int64_t outside_bytes();

// Returns freed heap pages to the system, so that memory that was needed only once is not kept.
void release_freed_memory();

}  // namespace snug::runtime
