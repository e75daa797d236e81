#include "backends/cuda/elementwise/kernels/noise.h"

#include "backends/cuda/kind_functions.h"
#include "backends/cuda/product/matrices.h"
#include "program/kinds/elementwise/noise.h"

namespace snug::backends::cuda {
namespace {

using program::AddNoise;

void run(const AddNoise& noise, const Invocation& invocation, CudaContext& context) {
  const Matrix x = matrix_of(invocation[AddNoise::kX]);
  const Matrix y = matrix_of(invocation[AddNoise::kY]);
  const Buffer& bounds = invocation[AddNoise::kBounds];
  add_noise({walk_rows({&x, &y}),
             x.operand,
             y.operand,
             {noise.seed, noise.site, integers_of(invocation[AddNoise::kRandom])},
             integers_of(bounds),
             bounds.shape[0],
             noise.alpha,
             noise.row_length},
            context.stream.get());
}

}  // namespace

SNUG_CUDA_KIND(AddNoise);

}  // namespace snug::backends::cuda
