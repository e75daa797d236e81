#include "backends/cuda/kernels/activations.h"

#include "backends/cuda/kind_functions.h"
#include "backends/cuda/matrices.h"

namespace snug::backends::cuda {
namespace {

using program::Relu;
using program::ReluGrad;

void run(const Relu&, const Invocation& invocation, CudaContext& context) {
  Matrix x = matrix_of(invocation[Relu::kX]);
  Matrix y = matrix_of(invocation[Relu::kY]);
  const Walk walk = walk_flat({&x, &y});
  relu({walk, x.operand, y.operand}, context.stream.get());
}

void run(const ReluGrad&, const Invocation& invocation, CudaContext& context) {
  Matrix dy = matrix_of(invocation[ReluGrad::kDY]);
  Matrix y = matrix_of(invocation[ReluGrad::kY]);
  Matrix dx = matrix_of(invocation[ReluGrad::kDX]);
  const Walk walk = walk_flat({&dy, &y, &dx});
  relu_grad({walk, dy.operand, y.operand, dx.operand}, context.stream.get());
}

}  // namespace

SNUG_CUDA_KIND(Relu);
SNUG_CUDA_KIND(ReluGrad);

}  // namespace snug::backends::cuda
