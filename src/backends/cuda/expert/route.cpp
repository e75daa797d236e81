#include "backends/cuda/expert/kernels/route.h"

#include "backends/cuda/kind_functions.h"
#include "backends/cuda/product/matrices.h"
#include "program/kinds/expert/route.h"

namespace snug::backends::cuda {
namespace {

using program::Route;
using program::RouteGrad;

SegmentList segments_of(const Buffer& bounds) { return {integers_of(bounds), bounds.shape.rows()}; }

void run(const Route& kind, const Invocation& invocation, CudaContext& context) {
  const Matrix logits = matrix_of(invocation[Route::kLogits]);
  RouteRun run;
  run.tokens = logits.rows;
  run.experts = logits.columns;
  run.k = kind.k;
  run.normalize = kind.normalize;
  run.sigmoid = kind.sigmoid;
  run.by_score = kind.chooses_by_score();
  run.groups = kind.groups;
  run.chosen_groups = kind.chosen_groups;
  run.scale = kind.scale;
  run.epsilon = kind.sigmoid ? static_cast<float>(program::kRouteEpsilon) : 0.0F;
  if (kind.corrected) run.correction = floats_of(invocation[Route::kCorrection]);
  run.logits = logits.operand;
  run.weights = floats_of(invocation[Route::kWeights]);
  run.ids = invocation[Route::kIds].as<int32_t>();
  run.places = invocation[Route::kPlaces].as<int32_t>();
  run.bounds = invocation[Route::kBounds].as<int32_t>();
  if (kind.balance) {
    run.segments = segments_of(invocation[Route::kSegments]);
    run.counts = invocation[Route::kCounts].as<int32_t>();
    run.sums = floats_of(invocation[Route::kSums]);
    run.loads = invocation.workspace.as<RouteLoad>();
  }
  route(run, context.stream.get());
}

void run(const RouteGrad& grad, const Invocation& invocation, CudaContext& context) {
  const Matrix logits = matrix_of(invocation[RouteGrad::kLogits]);
  const Buffer& dweights = invocation[RouteGrad::kDWeights];
  RouteGradRun run;
  run.tokens = logits.rows;
  run.experts = logits.columns;
  run.k = dweights.shape.columns();
  run.normalize = grad.normalize;
  run.sigmoid = grad.sigmoid;
  run.scale = grad.scale;
  run.dweights = floats_of(dweights);
  run.logits = logits.operand;
  run.dlogits = matrix_of(invocation[RouteGrad::kDLogits]).operand;
  run.ids = integers_of(invocation[RouteGrad::kIds]);
  if (grad.balance) {
    run.segments = segments_of(invocation[RouteGrad::kSegments]);
    run.dsums = floats_of(invocation[RouteGrad::kDSums]);
  }
  route_grad(run, context.stream.get());
}

}  // namespace

SNUG_CUDA_KIND(Route);
SNUG_CUDA_KIND(RouteGrad);

}  // namespace snug::backends::cuda
