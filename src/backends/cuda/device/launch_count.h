// How much a thread has queued on devices so far. The thread that drives a backend records the
// difference for each operation (Trace::launches).
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace snug::backends::cuda {

struct LaunchCount {
  int64_t launches = 0;  // kernels, and library calls that launch some
  // How many launches fewer the chosen algorithms of timed products take than programs state, which
  // is the most of any algorithm. It follows from the choices and not from `launches`, so that a
  // missing launch is not mistaken for a saved one.
  int64_t spared = 0;
  cudaStream_t stream = nullptr;  // the stream on which the last of them was queued

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
