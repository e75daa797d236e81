// Resident memory of this process, from /proc/self/status.
#pragma once

#include <cstdint>

namespace snug::runtime {

struct ProcessMemory {
  int64_t resident_bytes = 0;       // VmRSS
  int64_t resident_peak_bytes = 0;  // VmHWM: since the process began
};

// Zeros where /proc is not there.
ProcessMemory process_memory();

// What the process will hold next to the arenas during a run that is not rehearsed (rehearsal.h),
// asked before anything is allocated: what is resident now, and what libraries will add.
int64_t outside_bytes();

// Gives freed heap pages back to the system, so that what was needed once is not held for ever.
void release_freed_memory();

}  // namespace snug::runtime
