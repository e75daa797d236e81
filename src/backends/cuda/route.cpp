#include "backends/cuda/kernels/route.h"

#include "backends/cuda/kind_functions.h"
#include "backends/cuda/matrices.h"

namespace snug::backends::cuda {
namespace {

using program::Route;
using program::RouteGrad;

void run(const Route& kind, const Invocation& invocation, CudaContext& context) {
  const Matrix logits = matrix_of(invocation[Route::kLogits]);
  route({.tokens = logits.rows,
         .experts = logits.columns,
         .k = kind.k,
         .normalize = kind.normalize,
         .logits = logits.operand,
         .weights = floats_of(invocation[Route::kWeights]),
         .ids = invocation[Route::kIds].as<int32_t>(),
         .places = invocation[Route::kPlaces].as<int32_t>(),
         .bounds = invocation[Route::kBounds].as<int32_t>()},
        context.stream.get());
}

void run(const RouteGrad& grad, const Invocation& invocation, CudaContext& context) {
  const Matrix logits = matrix_of(invocation[RouteGrad::kLogits]);
  const Buffer& dweights = invocation[RouteGrad::kDWeights];
  route_grad({.tokens = logits.rows,
              .experts = logits.columns,
              .k = dweights.shape.columns(),
              .normalize = grad.normalize,
              .dweights = floats_of(dweights),
              .logits = logits.operand,
              .dlogits = matrix_of(invocation[RouteGrad::kDLogits]).operand,
              .ids = integers_of(invocation[RouteGrad::kIds])},
             context.stream.get());
}

}  // namespace

SNUG_CUDA_KIND(Route);
SNUG_CUDA_KIND(RouteGrad);

}  // namespace snug::backends::cuda
