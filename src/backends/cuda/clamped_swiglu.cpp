#include "backends/cuda/kernels/activations.h"

#include "backends/cuda/kind_functions.h"
#include "backends/cuda/matrices.h"

namespace snug::backends::cuda {
namespace {

using program::ClampedSwiglu;
using program::ClampedSwigluGrad;

void run(const ClampedSwiglu& swiglu, const Invocation& invocation, CudaContext& context) {
  const Matrix gate_up = matrix_of(invocation[ClampedSwiglu::kGateUp]);
  const Matrix y = matrix_of(invocation[ClampedSwiglu::kY]);
  clamped_swiglu(
      {walk_rows({&y, &gate_up}), gate_up.operand, y.operand, swiglu.limit, swiglu.alpha},
      context.stream.get());
}

void run(const ClampedSwigluGrad& grad, const Invocation& invocation, CudaContext& context) {
  const Matrix dy = matrix_of(invocation[ClampedSwigluGrad::kDY]);
  const Matrix gate_up = matrix_of(invocation[ClampedSwigluGrad::kGateUp]);
  const Matrix dgate_up = matrix_of(invocation[ClampedSwigluGrad::kDGateUp]);
  clamped_swiglu_grad({walk_rows({&dy, &gate_up, &dgate_up}), dy.operand, gate_up.operand,
                       dgate_up.operand, grad.limit, grad.alpha},
                      context.stream.get());
}

}  // namespace

SNUG_CUDA_KIND(ClampedSwiglu);
SNUG_CUDA_KIND(ClampedSwigluGrad);

}  // namespace snug::backends::cuda
