#include "backends/cuda/kernels/silu_mul.h"

#include "backends/cuda/kind_functions.h"
#include "backends/cuda/matrices.h"

namespace snug::backends::cuda {

void run(const program::SiluMul&, const Invocation& invocation, CudaContext& context) {
  Matrix gate = matrix_of(invocation.reads[0]);
  Matrix up = matrix_of(invocation.reads[1]);
  Matrix y = matrix_of(invocation.writes[0]);
  const Walk walk = walk_flat({&gate, &up, &y});
  silu_mul({walk, gate.operand, up.operand, y.operand}, context.stream.get());
}

void run(const program::SiluMulGrad&, const Invocation& invocation, CudaContext& context) {
  Matrix dy = matrix_of(invocation.reads[0]);
  Matrix gate = matrix_of(invocation.reads[1]);
  Matrix up = matrix_of(invocation.reads[2]);
  Matrix dgate = matrix_of(invocation.writes[0]);
  Matrix dup = matrix_of(invocation.writes[1]);
  const Walk walk = walk_flat({&dy, &gate, &up, &dgate, &dup});
  silu_mul_grad({walk, dy.operand, gate.operand, up.operand, dgate.operand, dup.operand},
                context.stream.get());
}

}  // namespace snug::backends::cuda
