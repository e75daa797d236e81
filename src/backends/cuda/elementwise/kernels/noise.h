// The launch of add_noise; program/kinds/elementwise/noise.h defines it. Asynchronous on the
// stream; y may be the same memory as x.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "backends/cuda/elementwise/kernels/elementwise.h"
#include "backends/cuda/kernels/device_rows.h"

namespace snug::backends::cuda {

struct AddNoiseRun {
  Walk walk;
  DeviceRows x, y;
  RandomKey key;
  const int32_t* bounds = nullptr;  // (segments, 2)
  int64_t segments = 0;
  float alpha = 0.0F;
  int64_t row_length = 1;
};
void add_noise(const AddNoiseRun& run, cudaStream_t stream);

}  // namespace snug::backends::cuda
