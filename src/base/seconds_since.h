// The seconds that have passed on the steady clock.
#pragma once

#include <chrono>

namespace snug::base {

inline double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace snug::base
