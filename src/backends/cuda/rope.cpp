#include "backends/cuda/kernels/rope.h"

#include "backends/cuda/kind_functions.h"
#include "backends/cuda/matrices.h"
#include "backends/cuda/rotations.h"

namespace snug::backends::cuda {
namespace {

using program::Rope;
using program::RotaryTable;

void run(const RotaryTable& rotary, const Invocation& invocation, CudaContext& context) {
  const Buffer& frequency = invocation[RotaryTable::kInverseFrequency];
  rotary_table(
      {integers_of(invocation[RotaryTable::kPositions]), floats_of(frequency),
       floats_of(invocation[RotaryTable::kTable]), invocation[RotaryTable::kPositions].elements(),
       frequency.elements(), rotary.factor},
      context.stream.get());
}

void run(const Rope& rotation, const Invocation& invocation, CudaContext& context) {
  const Matrix x = matrix_of(invocation[Rope::kX]);
  const Matrix table = matrix_of(invocation[Rope::kTable]);
  const Matrix y = matrix_of(invocation[Rope::kY]);
  Walk walk = walk_rows({&x, &table, &y});
  walk.vectors = walk.vectors && rotation.head_dim / 2 % kVectorElements == 0;
  const int64_t heads = x.columns / rotation.head_dim;
  rope({walk, x.operand, y.operand, table.operand, rotation.head_dim,
        rotation.turned_heads > 0 ? rotation.turned_heads : heads, rotation.inverse},
       context.stream.get());
}

void run_together(const Rope&, std::span<const Invocation> list, CudaContext& context) {
  run_rotations_together(list, context);
}

}  // namespace

SNUG_CUDA_KIND(RotaryTable);
SNUG_CUDA_KIND(Rope, .run_together = run_together);

}  // namespace snug::backends::cuda
