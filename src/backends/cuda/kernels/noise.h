// Values for products that are timed: a card multiplies zeros with less power, and so at a higher
// clock, than what training has.
#pragma once

#include <cuda_runtime_api.h>

#include "backends/cuda/kernels/operand.h"

namespace snug::backends::cuda {

struct FillNoiseRun {
  Walk walk;
  Operand y;
};
// y = values of [-1, 1) that differ from element to element, the same on every run. Asynchronous.
void fill_noise(const FillNoiseRun& run, cudaStream_t stream);

}  // namespace snug::backends::cuda
