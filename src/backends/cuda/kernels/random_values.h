// Random tensors: the values of backends/random_values.h, bit for bit.
#pragma once

#include <cuda_runtime_api.h>

#include "backends/cuda/kernels/operand.h"
#include "backends/random_values.h"

namespace snug::backends::cuda {

// One row of elements.
struct RandomValuesRun {
  Walk walk;
  Operand to;
  RandomValues values;
  int64_t first_group = 0;
};
void make_random_values(const RandomValuesRun& run, cudaStream_t stream);

}  // namespace snug::backends::cuda
