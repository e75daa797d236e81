// Kernels are loaded before the first step. CUDA loads a kernel when it is first asked for, which
// takes memory of the card that it may not have. So the host code that runs an operation is called
// once with a KernelLoading on its thread: what it would launch is loaded and not launched, and
// libraries are not called, whose kernels are loaded when operations are tuned.
#pragma once

#include "backends/cuda/device/cuda_check.h"

namespace snug::backends::cuda {

class KernelLoading {
 public:
  KernelLoading() { ++count(); }
  KernelLoading(const KernelLoading&) = delete;
  KernelLoading& operator=(const KernelLoading&) = delete;
  ~KernelLoading() { --count(); }
  // Whether one lives on the calling thread.
  static bool is_on() { return count() > 0; }

 private:
  static int& count() {
    thread_local int living = 0;
    return living;
  }
};

// Loads it, where it is not loaded. Throws UserError where the card has no memory for it.
inline void load_kernel(const void* kernel) {
  // Some of these the driver knows only of a kernel that is loaded.
  cudaFuncAttributes attributes{};
  CUDA_CHECK_MEMORY("a kernel", cudaFuncGetAttributes(&attributes, kernel));
}

}  // namespace snug::backends::cuda
