#include "backends/cuda/loss/kernels/orpo.h"

#include "backends/cuda/kind_functions.h"
#include "backends/cuda/product/matrices.h"
#include "program/kinds/loss/orpo.h"

namespace snug::backends::cuda {
namespace {

using program::Orpo;
using program::OrpoGrad;

template <typename Struct>
OrpoRun odds_run(const Struct& orpo, const Invocation& invocation) {
  const Buffer& policy = invocation[Struct::kPolicy];
  return {floats_of(policy),
          integers_of(invocation[Struct::kBounds]),
          floats_of(invocation[Struct::kInversePairs]),
          floats_of(invocation[Struct::kInverseTokens]),
          policy.elements() / 2,
          orpo.beta};
}

void run(const Orpo& orpo, const Invocation& invocation, CudaContext& context) {
  orpo_loss(odds_run(orpo, invocation), floats_of(invocation[Orpo::kNll]),
            floats_of(invocation[Orpo::kMeasures]), floats_of(invocation[Orpo::kLoss]),
            context.stream.get());
}

void run(const OrpoGrad& grad, const Invocation& invocation, CudaContext& context) {
  orpo_grad(odds_run(grad, invocation), floats_of(invocation[OrpoGrad::kDPolicy]),
            floats_of(invocation[OrpoGrad::kDNll]), context.stream.get());
}

}  // namespace

SNUG_CUDA_KIND(Orpo);
SNUG_CUDA_KIND(OrpoGrad);

}  // namespace snug::backends::cuda
