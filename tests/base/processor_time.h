// The time that this process has computed. A test that bounds what something takes asks for it and
// not for a clock: other programs may take the processor in between.
#pragma once

#include <ctime>

namespace snug::testing {

inline double processor_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace snug::testing
