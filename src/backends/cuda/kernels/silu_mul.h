// The gated activation and its derivative. Outputs may take the bytes of gate and up.
#pragma once

#include <cuda_runtime_api.h>

#include "backends/cuda/kernels/operand.h"

namespace snug::backends::cuda {

struct SiluMulRun {
  Walk walk;
  Operand gate, up, y;
};
void silu_mul(const SiluMulRun& run, cudaStream_t stream);

struct SiluMulGradRun {
  Walk walk;
  Operand dy, gate, up, dgate, dup;
};
void silu_mul_grad(const SiluMulGradRun& run, cudaStream_t stream);

}  // namespace snug::backends::cuda
