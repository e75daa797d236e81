// What a thread has queued on devices so far. The thread that drives a backend notes the difference
// that an operation makes (Trace::launches).
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace snug::backends::cuda {

struct LaunchCount {
  int64_t launches = 0;  // of kernels, and of library calls that start some
  // How many fewer than programs state the chosen algorithms of timed products take: programs state
  // the most that any of a product's algorithms takes. Follows from what was chosen, and not from
  // `launches`, so that a launch that is left out is no launch spared.
  int64_t spared = 0;
  cudaStream_t stream = nullptr;  // of the last of them

  void add(cudaStream_t queued_on) {
    ++launches;
    stream = queued_on;
  }
};

// The count of the calling thread.
inline LaunchCount& launch_count() {
  thread_local LaunchCount count;
  return count;
}

}  // namespace snug::backends::cuda
