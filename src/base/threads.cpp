#include "base/threads.h"

#include <algorithm>
#include <thread>

namespace snug::base {

int thread_count(int64_t wanted) {
  if (wanted > 0) return static_cast<int>(wanted);
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace snug::base
