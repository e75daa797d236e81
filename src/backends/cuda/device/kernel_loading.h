// Kernels are loaded before the first step. CUDA would load a kernel on first use, which takes GPU
// memory that may not be there. So the host code that runs an operation is called once with a
// KernelLoading on its thread: what it would launch is only loaded, and libraries are not called,
// since their kernels are loaded when operations are tuned.
#pragma once

#include "backends/cuda/device/cuda_check.h"

namespace snug::backends::cuda {

class KernelLoading {
 public:
  KernelLoading() { ++count(); }
  KernelLoading(const KernelLoading&) = delete;
  KernelLoading& operator=(const KernelLoading&) = delete;
  ~KernelLoading() { --count(); }
  // Whether the calling thread has such an object.
  static bool is_on() { return count() > 0; }

 private:
  static int& count() {
    thread_local int living = 0;
    return living;
  }
};

// Loads the kernel if it is not loaded yet. Throws UserError where the GPU has no memory for it.
inline void load_kernel(const void* kernel) {
  // The driver knows some of these attributes only for a loaded kernel.
  cudaFuncAttributes attributes{};
  CUDA_CHECK_MEMORY("a kernel", cudaFuncGetAttributes(&attributes, kernel));
}

}  // namespace snug::backends::cuda
