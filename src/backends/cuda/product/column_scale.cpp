#include "backends/cuda/product/kernels/column_scale.h"

#include "backends/cuda/kind_functions.h"
#include "backends/cuda/product/kernels/column_sums.h"
#include "backends/cuda/product/matrices.h"
#include "program/kinds/norm/row_norms.h"
#include "program/kinds/product/column_scale.h"

namespace snug::backends::cuda {
namespace {

using program::ColumnGainGrad;
using program::RowNorms;
using program::ScaleColumns;

void run(const ScaleColumns& scale, const Invocation& invocation, CudaContext& context) {
  const Matrix x = matrix_of(invocation[ScaleColumns::kX]);
  const Matrix gain = matrix_of(invocation[ScaleColumns::kGain]);
  const Matrix divisor = scale.divided ? matrix_of(invocation[ScaleColumns::kDivisor]) : gain;
  const Matrix y = matrix_of(invocation[ScaleColumns::kY]);
  // With fewer gains than columns, vectors are not used.
  const int64_t width = program::columns_of_gain(x.columns, gain.columns);
  const Walk walk = width == 1 ? walk_rows({&x, &gain, &divisor, &y}) : walk_rows({&x, &y});
  scale_columns({walk, x.operand, gain.operand, scale.divided ? divisor.operand : DeviceRows{},
                 y.operand, width},
                context.stream.get());
}

void run(const ColumnGainGrad& grad, const Invocation& invocation, CudaContext& context) {
  const Matrix dy = matrix_of(invocation[ColumnGainGrad::kDY]);
  const Matrix x = matrix_of(invocation[ColumnGainGrad::kX]);
  const Matrix dgain = matrix_of(invocation[ColumnGainGrad::kDGain]);
  DeviceRows divisor;
  if (grad.divided) divisor = matrix_of(invocation[ColumnGainGrad::kDivisor]).operand;
  const int64_t width =
      program::columns_of_gain(dy.columns, invocation[ColumnGainGrad::kDGain].elements());
  sum_products({dy.operand, x.operand, divisor},
               {dy.rows, dy.columns, invocation.workspace.as<float>(), dgain.operand,
                grad.accumulate, width},
               context.stream.get());
}

void run(const RowNorms& norms, const Invocation& invocation, CudaContext& context) {
  const Matrix w = matrix_of(invocation[RowNorms::kW]);
  RowNormsRun run{.rows = norms.transposed ? w.columns : w.rows,
                  .columns = norms.transposed ? w.rows : w.columns,
                  .w = w.operand,
                  .a = {},
                  .b = {},
                  .transposed = norms.transposed,
                  .alpha = norms.alpha,
                  .norms = floats_of(invocation[RowNorms::kNorms])};
  if (norms.low_rank) {
    const Matrix a = matrix_of(invocation[RowNorms::kA]);
    run.rank = a.rows;
    run.a = a.operand;
    run.b = matrix_of(invocation[RowNorms::kB]).operand;
  }
  row_norms(run, context.stream.get());
}

}  // namespace

SNUG_CUDA_KIND(ScaleColumns);
SNUG_CUDA_KIND(ColumnGainGrad);
SNUG_CUDA_KIND(RowNorms);

}  // namespace snug::backends::cuda
