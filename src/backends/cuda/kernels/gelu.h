// gelu and its derivative, exact or in the form with tanh. Outputs may take the bytes of an input.
#pragma once

#include <cuda_runtime_api.h>

#include "backends/cuda/kernels/operand.h"

namespace snug::backends::cuda {

struct GeluRun {
  Walk walk;
  Operand x, y;
  bool tanh = false;
};
void gelu(const GeluRun& run, cudaStream_t stream);

struct GeluGradRun {
  Walk walk;
  Operand dy, x, dx;
  bool tanh = false;
};
void gelu_grad(const GeluGradRun& run, cudaStream_t stream);

}  // namespace snug::backends::cuda
