#include "backends/cuda/kernels/activations.h"

#include "backends/cuda/kind_functions.h"
#include "backends/cuda/matrices.h"

namespace snug::backends::cuda {
namespace {

using program::SiluMul;
using program::SiluMulGrad;

void run(const SiluMul&, const Invocation& invocation, CudaContext& context) {
  Matrix gate = matrix_of(invocation[SiluMul::kGate]);
  Matrix up = matrix_of(invocation[SiluMul::kUp]);
  Matrix y = matrix_of(invocation[SiluMul::kY]);
  const Walk walk = walk_flat({&gate, &up, &y});
  silu_mul({walk, gate.operand, up.operand, y.operand}, context.stream.get());
}

void run(const SiluMulGrad&, const Invocation& invocation, CudaContext& context) {
  Matrix dy = matrix_of(invocation[SiluMulGrad::kDY]);
  Matrix gate = matrix_of(invocation[SiluMulGrad::kGate]);
  Matrix up = matrix_of(invocation[SiluMulGrad::kUp]);
  Matrix dgate = matrix_of(invocation[SiluMulGrad::kDGate]);
  Matrix dup = matrix_of(invocation[SiluMulGrad::kDUp]);
  const Walk walk = walk_flat({&dy, &gate, &up, &dgate, &dup});
  silu_mul_grad({walk, dy.operand, gate.operand, up.operand, dgate.operand, dup.operand},
                context.stream.get());
}

}  // namespace

SNUG_CUDA_KIND(SiluMul);
SNUG_CUDA_KIND(SiluMulGrad);

}  // namespace snug::backends::cuda
