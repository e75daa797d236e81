// What every kind's function of the CUDA backend is given besides its operation.
#pragma once

#include <cstdint>

#include "backends/cuda/cublas_lt.h"
#include "backends/cuda/stream.h"

namespace snug::backends::cuda {

struct Device {
  int compute_capability = 0;  // 90: 9.0
  int multiprocessors = 0;
  int64_t shared_bytes = 0;  // that a block may ask for
  int runtime_version = 0;
  int driver_version = 0;
};

// Takes the first device. Throws UserError where there is none, or no driver.
Device open_device();

struct CudaContext {
  Device device = open_device();
  Stream stream;
  CublasLt cublas_lt;
};

}  // namespace snug::backends::cuda
