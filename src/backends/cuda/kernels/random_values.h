// Fills tensors with values that the device computes: those of backends/formulas/random_values.h,
// bit for bit, or noise.
#pragma once

#include <cuda_runtime_api.h>

#include "backends/cuda/kernels/device_rows.h"
#include "backends/formulas/random_values.h"

namespace snug::backends::cuda {

// Fills a single row of elements.
struct RandomValuesRun {
  Walk walk;
  DeviceRows to;
  RandomValues values;
  int64_t first_group = 0;
};
void make_random_values(const RandomValuesRun& run, cudaStream_t stream);

// Values for products that are timed: a GPU multiplies zeros with less power, and so at a higher
// clock, than the values of training.
struct FillNoiseRun {
  Walk walk;
  DeviceRows y;
};
// y = values in [-1, 1) that vary between elements and are the same in every run. Asynchronous.
void fill_noise(const FillNoiseRun& run, cudaStream_t stream);

}  // namespace snug::backends::cuda
