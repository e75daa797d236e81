// Tensors whose values the device makes: those of backends/formulas/random_values.h, bit for bit,
// and noise.
#pragma once

#include <cuda_runtime_api.h>

#include "backends/cuda/kernels/device_rows.h"
#include "backends/formulas/random_values.h"

namespace snug::backends::cuda {

// One row of elements.
struct RandomValuesRun {
  Walk walk;
  DeviceRows to;
  RandomValues values;
  int64_t first_group = 0;
};
void make_random_values(const RandomValuesRun& run, cudaStream_t stream);

// Values for products that are timed: a card multiplies zeros with less power, and so at a higher
// clock, than what training has.
struct FillNoiseRun {
  Walk walk;
  DeviceRows y;
};
// y = values of [-1, 1) that differ from element to element, the same on every run. Asynchronous.
void fill_noise(const FillNoiseRun& run, cudaStream_t stream);

}  // namespace snug::backends::cuda
