// What every kind's function of the CUDA backend is given besides its operation.
#pragma once

#include <cstdint>
#include <string>

#include "backends/cuda/cublas_lt.h"
#include "backends/cuda/needs/card.h"
#include "backends/cuda/stream.h"

namespace snug::backends::cuda {

struct Device {
  Card card;
  std::string name;  // "NVIDIA H100 80GB HBM3"
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
