#include "backends/cuda/kernels/activations.h"

#include "backends/cuda/kind_functions.h"
#include "backends/cuda/matrices.h"

namespace snug::backends::cuda {
namespace {

using program::GeluMul;
using program::GeluMulGrad;

void run(const GeluMul& gated, const Invocation& invocation, CudaContext& context) {
  Matrix gate = matrix_of(invocation[GeluMul::kGate]);
  Matrix up = matrix_of(invocation[GeluMul::kUp]);
  Matrix y = matrix_of(invocation[GeluMul::kY]);
  const Walk walk = walk_flat({&gate, &up, &y});
  gelu_mul({walk, gate.operand, up.operand, y.operand, gated.tanh}, context.stream.get());
}

void run(const GeluMulGrad& grad, const Invocation& invocation, CudaContext& context) {
  Matrix dy = matrix_of(invocation[GeluMulGrad::kDY]);
  Matrix gate = matrix_of(invocation[GeluMulGrad::kGate]);
  Matrix up = matrix_of(invocation[GeluMulGrad::kUp]);
  Matrix dgate = matrix_of(invocation[GeluMulGrad::kDGate]);
  Matrix dup = matrix_of(invocation[GeluMulGrad::kDUp]);
  const Walk walk = walk_flat({&dy, &gate, &up, &dgate, &dup});
  gelu_mul_grad({walk, dy.operand, gate.operand, up.operand, dgate.operand, dup.operand, grad.tanh},
                context.stream.get());
}

}  // namespace

SNUG_CUDA_KIND(GeluMul);
SNUG_CUDA_KIND(GeluMulGrad);

}  // namespace snug::backends::cuda
