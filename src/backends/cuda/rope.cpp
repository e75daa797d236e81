#include "backends/cuda/kernels/rope.h"

#include "backends/cuda/kind_functions.h"
#include "backends/cuda/matrices.h"

namespace snug::backends::cuda {

void run(const program::RotaryTable& rotary, const Invocation& invocation, CudaContext& context) {
  const Buffer& frequency = invocation.reads[1];
  rotary_table(
      {integers_of(invocation.reads[0]), floats_of(frequency), floats_of(invocation.writes[0]),
       invocation.reads[0].elements(), frequency.elements(), rotary.factor},
      context.stream.get());
}

void run(const program::Rope& rotation, const Invocation& invocation, CudaContext& context) {
  const Matrix x = matrix_of(invocation.reads[0]);
  const Matrix table = matrix_of(invocation.reads[1]);
  const Matrix y = matrix_of(invocation.writes[0]);
  Walk walk = walk_rows({&x, &table, &y});
  walk.vectors = walk.vectors && rotation.head_dim / 2 % kVectorElements == 0;
  const int64_t heads = x.columns / rotation.head_dim;
  rope({walk, x.operand, y.operand, table.operand, rotation.head_dim,
        rotation.turned_heads > 0 ? rotation.turned_heads : heads, rotation.inverse},
       context.stream.get());
}

}  // namespace snug::backends::cuda
