#include "backends/cuda/few_rows.h"

#include "backends/cuda/kernels/few_rows.h"
#include "backends/cuda/kernels/few_rows_matrix.h"

namespace snug::backends::cuda {
namespace {

template <typename Weight>
FewRowsLaunch<Weight> launch_of(const Matrix& x, const FewRowsPart<Weight>& part) {
  FewRowsLaunch<Weight> launch;
  launch.rows = x.rows;
  launch.columns = x.columns;
  launch.x = x.operand;
  launch.add(part);
  return launch;
}

Bf16Weight bf16_weight(const Matrix& weight) {
  return {static_cast<const uint16_t*>(weight.operand.data), weight.operand.stride};
}

}  // namespace

void multiply_few_rows(const FewRowsProduct& product, CudaContext& context) {
  const auto& [x, weight, addend, y, alpha] = product;
  if (y.columns == 0) return;
  const Walk inputs = walk_rows({&x, &weight});
  if (inputs.vectors && x.operand.is_bf16 && weight.operand.is_bf16) {
    const FewRowsPart<Bf16Weight> part{bf16_weight(weight), addend, y.operand, y.columns, alpha};
    return multiply_few_rows(launch_of(x, part), context.stream.get());
  }
  multiply_few_rows(FewRowsRun{.inputs = inputs,
                               .outputs = y.columns,
                               .x = x.operand,
                               .weight = weight.operand,
                               .addend = addend,
                               .y = y.operand,
                               .alpha = alpha},
                    context.stream.get());
}

void multiply_few_rows(const FewRowsNf4Product& product, CudaContext& context) {
  const auto& [x, weight, y] = product;
  if (y.columns == 0) return;
  const Walk inputs = walk_rows({&x});
  if (inputs.vectors && x.operand.is_bf16 && is_aligned(weight.codes)) {
    const FewRowsPart<StoredNf4> part{weight, {}, y.operand, y.columns};
    return multiply_few_rows(launch_of(x, part), context.stream.get());
  }
  multiply_few_rows_nf4(
      {.inputs = inputs, .outputs = y.columns, .x = x.operand, .weight = weight, .y = y.operand},
      context.stream.get());
}

}  // namespace snug::backends::cuda
