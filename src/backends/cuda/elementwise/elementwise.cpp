#include "backends/cuda/elementwise/kernels/elementwise.h"

#include "backends/cuda/kind_functions.h"
#include "backends/cuda/product/kernels/column_sums.h"
#include "backends/cuda/product/matrices.h"
#include "program/kinds/elementwise/elementwise.h"

namespace snug::backends::cuda {
namespace {

using program::Accumulate;
using program::Add;
using program::AddBias;
using program::Cast;
using program::Dropout;
using program::Scale;
using program::SumRows;
using program::Zeros;

void run(const Add&, const Invocation& invocation, CudaContext& context) {
  Matrix a = matrix_of(invocation[Add::kA]);
  Matrix b = matrix_of(invocation[Add::kB]);
  Matrix c = matrix_of(invocation[Add::kC]);
  const Walk walk = walk_flat({&a, &b, &c});
  add({walk, a.operand, b.operand, c.operand}, context.stream.get());
}

void run(const Accumulate& accumulate, const Invocation& invocation, CudaContext& context) {
  Matrix x = matrix_of(invocation[Accumulate::kX]);
  Matrix y = matrix_of(invocation[Accumulate::kY]);
  const Walk walk = walk_flat({&y, &x});
  if (accumulate.stochastic)
    add_rounded({walk,
                 x.operand,
                 y.operand,
                 {accumulate.seed, accumulate.site, integers_of(invocation[Accumulate::kRandom])}},
                context.stream.get());
  else
    add({walk, y.operand, x.operand, y.operand}, context.stream.get());
}

void run(const AddBias&, const Invocation& invocation, CudaContext& context) {
  const Matrix x = matrix_of(invocation[AddBias::kX]);
  const Matrix bias = matrix_of(invocation[AddBias::kBias]);
  const Matrix y = matrix_of(invocation[AddBias::kY]);
  const Walk walk = walk_rows({&x, &bias, &y});
  add_bias({walk, x.operand, bias.operand, y.operand}, context.stream.get());
}

void run(const SumRows& sum, const Invocation& invocation, CudaContext& context) {
  const Matrix x = matrix_of(invocation[SumRows::kX]);
  const Matrix y = matrix_of(invocation[SumRows::kY]);
  sum_rows(x.operand,
           {x.rows, x.columns, invocation.workspace.as<float>(), y.operand, sum.accumulate},
           context.stream.get());
}

void run(const Scale& scaled, const Invocation& invocation, CudaContext& context) {
  Matrix x = matrix_of(invocation[Scale::kX]);
  Matrix y = matrix_of(invocation[Scale::kY]);
  const Walk walk = walk_flat({&x, &y});
  scale({walk, x.operand, y.operand, scaled.factor}, context.stream.get());
}

void run(const Dropout& dropped, const Invocation& invocation, CudaContext& context) {
  const Matrix x = matrix_of(invocation[Dropout::kX]);
  const Matrix y = matrix_of(invocation[Dropout::kY]);
  dropout({walk_rows({&x, &y}),
           x.operand,
           y.operand,
           {dropped.seed, dropped.site, integers_of(invocation[Dropout::kRandom])},
           dropped.probability,
           dropped.row_length},
          context.stream.get());
}

void run(const Cast&, const Invocation& invocation, CudaContext& context) {
  Matrix x = matrix_of(invocation[Cast::kX]);
  Matrix y = matrix_of(invocation[Cast::kY]);
  const Walk walk = walk_flat({&x, &y});
  cast({walk, x.operand, y.operand}, context.stream.get());
}

void run(const Zeros&, const Invocation& invocation, CudaContext& context) {
  Matrix y = matrix_of(invocation[Zeros::kY]);
  const Walk walk = walk_flat({&y});
  fill_zero({walk, y.operand}, context.stream.get());
}

}  // namespace

SNUG_CUDA_KIND(Add);
SNUG_CUDA_KIND(Accumulate);
SNUG_CUDA_KIND(AddBias);
SNUG_CUDA_KIND(SumRows);
SNUG_CUDA_KIND(Scale);
SNUG_CUDA_KIND(Dropout);
SNUG_CUDA_KIND(Cast);
SNUG_CUDA_KIND(Zeros);

}  // namespace snug::backends::cuda
