#include "backends/cuda/kernels/activations.h"

#include "backends/cuda/kind_functions.h"
#include "backends/cuda/matrices.h"

namespace snug::backends::cuda {
namespace {

using program::Gelu;
using program::GeluGrad;

void run(const Gelu& form, const Invocation& invocation, CudaContext& context) {
  Matrix x = matrix_of(invocation[Gelu::kX]);
  Matrix y = matrix_of(invocation[Gelu::kY]);
  const Walk walk = walk_flat({&x, &y});
  gelu({walk, x.operand, y.operand, form.tanh}, context.stream.get());
}

void run(const GeluGrad& form, const Invocation& invocation, CudaContext& context) {
  Matrix dy = matrix_of(invocation[GeluGrad::kDY]);
  Matrix x = matrix_of(invocation[GeluGrad::kX]);
  Matrix dx = matrix_of(invocation[GeluGrad::kDX]);
  const Walk walk = walk_flat({&dy, &x, &dx});
  gelu_grad({walk, dy.operand, x.operand, dx.operand, form.tanh}, context.stream.get());
}

}  // namespace

SNUG_CUDA_KIND(Gelu);
SNUG_CUDA_KIND(GeluGrad);

}  // namespace snug::backends::cuda
