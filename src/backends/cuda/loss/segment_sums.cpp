#include "backends/cuda/loss/kernels/segment_sums.h"

#include "backends/cuda/kind_functions.h"
#include "backends/cuda/product/matrices.h"
#include "program/kinds/loss/segment_sums.h"

namespace snug::backends::cuda {
namespace {

using program::SpreadSegments;
using program::SumSegments;
using program::WeighRows;

void run(const SumSegments& sum, const Invocation& invocation, CudaContext& context) {
  const Buffer& sums = invocation[SumSegments::kSums];
  sum_segments(
      {floats_of(invocation[SumSegments::kValues]), integers_of(invocation[SumSegments::kBounds]),
       floats_of(sums), sums.elements(), sum.scale},
      context.stream.get());
}

void run(const SpreadSegments& spread, const Invocation& invocation, CudaContext& context) {
  const Buffer& sums = invocation[SpreadSegments::kSums];
  const Buffer& values = invocation[SpreadSegments::kValues];
  spread_segments({floats_of(sums), integers_of(invocation[SpreadSegments::kBounds]),
                   floats_of(values), sums.elements(), values.elements(), spread.scale},
                  context.stream.get());
}

void run(const WeighRows&, const Invocation& invocation, CudaContext& context) {
  const Matrix x = matrix_of(invocation[WeighRows::kX]);
  const Matrix y = matrix_of(invocation[WeighRows::kY]);
  weigh_rows(
      {walk_rows({&x, &y}), x.operand, y.operand, floats_of(invocation[WeighRows::kWeights])},
      context.stream.get());
}

}  // namespace

SNUG_CUDA_KIND(SumSegments);
SNUG_CUDA_KIND(SpreadSegments);
SNUG_CUDA_KIND(WeighRows);

}  // namespace snug::backends::cuda
