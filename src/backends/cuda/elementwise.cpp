#include "backends/cuda/kernels/elementwise.h"

#include "backends/cuda/kernels/column_sums.h"
#include "backends/cuda/kind_functions.h"
#include "backends/cuda/matrices.h"

namespace snug::backends::cuda {

void run(const program::Add&, const Invocation& invocation, CudaContext& context) {
  Matrix a = matrix_of(invocation.reads[0]);
  Matrix b = matrix_of(invocation.reads[1]);
  Matrix c = matrix_of(invocation.writes[0]);
  const Walk walk = walk_flat({&a, &b, &c});
  add({walk, a.operand, b.operand, c.operand}, context.stream.get());
}

void run(const program::Accumulate& accumulate, const Invocation& invocation,
         CudaContext& context) {
  Matrix x = matrix_of(invocation.reads[0]);
  Matrix y = matrix_of(invocation.updates[0]);
  const Walk walk = walk_flat({&y, &x});
  if (accumulate.stochastic)
    add_rounded({walk,
                 x.operand,
                 y.operand,
                 {accumulate.seed, accumulate.site, integers_of(invocation.reads[1])}},
                context.stream.get());
  else
    add({walk, y.operand, x.operand, y.operand}, context.stream.get());
}

void run(const program::AddBias&, const Invocation& invocation, CudaContext& context) {
  const Matrix x = matrix_of(invocation.reads[0]);
  const Matrix bias = matrix_of(invocation.reads[1]);
  const Matrix y = matrix_of(invocation.writes[0]);
  const Walk walk = walk_rows({&x, &bias, &y});
  add_bias({walk, x.operand, bias.operand, y.operand}, context.stream.get());
}

void run(const program::SumRows& sum, const Invocation& invocation, CudaContext& context) {
  const Matrix x = matrix_of(invocation.reads[0]);
  const Matrix y = matrix_of(sum.accumulate ? invocation.updates[0] : invocation.writes[0]);
  sum_rows(x.operand,
           {x.rows, x.columns, invocation.workspace.as<float>(), y.operand, sum.accumulate},
           context.stream.get());
}

void run(const program::Dropout& dropped, const Invocation& invocation, CudaContext& context) {
  const Matrix x = matrix_of(invocation.reads[0]);
  const Matrix y = matrix_of(invocation.writes[0]);
  dropout({walk_rows({&x, &y}),
           x.operand,
           y.operand,
           {dropped.seed, dropped.site, integers_of(invocation.reads[1])},
           dropped.probability,
           dropped.row_length},
          context.stream.get());
}

void run(const program::Cast&, const Invocation& invocation, CudaContext& context) {
  Matrix x = matrix_of(invocation.reads[0]);
  Matrix y = matrix_of(invocation.writes[0]);
  const Walk walk = walk_flat({&x, &y});
  cast({walk, x.operand, y.operand}, context.stream.get());
}

}  // namespace snug::backends::cuda
