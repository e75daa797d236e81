#include "backends/cuda/expert/kernels/expert_rows.h"

#include "backends/cuda/kind_functions.h"
#include "backends/cuda/product/matrices.h"
#include "program/kinds/expert/expert_rows.h"

namespace snug::backends::cuda {
namespace {

using program::Combine;
using program::Permute;
using program::ScaleRows;
using program::ScaleRowsGrad;

void run(const Permute&, const Invocation& invocation, CudaContext& context) {
  const Matrix x = matrix_of(invocation[Permute::kX]);
  const Matrix y = matrix_of(invocation[Permute::kY]);
  const Buffer& places = invocation[Permute::kPlaces];
  permute_rows(
      {walk_rows({&x, &y}), x.operand, y.operand, integers_of(places), places.shape.columns()},
      context.stream.get());
}

void run(const Combine&, const Invocation& invocation, CudaContext& context) {
  const Matrix x = matrix_of(invocation[Combine::kX]);
  const Matrix y = matrix_of(invocation[Combine::kY]);
  const Buffer& places = invocation[Combine::kPlaces];
  combine_rows(
      {walk_rows({&y, &x}), x.operand, y.operand, integers_of(places), places.shape.columns()},
      context.stream.get());
}

void run(const ScaleRows&, const Invocation& invocation, CudaContext& context) {
  const Matrix x = matrix_of(invocation[ScaleRows::kX]);
  const Matrix y = matrix_of(invocation[ScaleRows::kY]);
  scale_rows({walk_rows({&x, &y}), x.operand, y.operand, floats_of(invocation[ScaleRows::kWeights]),
              integers_of(invocation[ScaleRows::kPlaces])},
             context.stream.get());
}

void run(const ScaleRowsGrad&, const Invocation& invocation, CudaContext& context) {
  const Matrix dy = matrix_of(invocation[ScaleRowsGrad::kDY]);
  const Matrix x = matrix_of(invocation[ScaleRowsGrad::kX]);
  const Matrix dx = matrix_of(invocation[ScaleRowsGrad::kDX]);
  scale_rows_grad({walk_rows({&x, &dy, &dx}), dy.operand, x.operand, dx.operand,
                   floats_of(invocation[ScaleRowsGrad::kWeights]),
                   floats_of(invocation[ScaleRowsGrad::kDWeights]),
                   integers_of(invocation[ScaleRowsGrad::kPlaces])},
                  context.stream.get());
}

}  // namespace

SNUG_CUDA_KIND(Permute);
SNUG_CUDA_KIND(Combine);
SNUG_CUDA_KIND(ScaleRows);
SNUG_CUDA_KIND(ScaleRowsGrad);

}  // namespace snug::backends::cuda
