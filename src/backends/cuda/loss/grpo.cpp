#include "program/kinds/loss/grpo.h"

#include "backends/cuda/kind_functions.h"
#include "backends/cuda/loss/kernels/grpo.h"
#include "backends/cuda/product/matrices.h"

namespace snug::backends::cuda {
namespace {

using program::Grpo;
using program::GrpoGrad;

template <typename Struct>
GrpoRun grpo_run(const Struct& grpo, const Invocation& invocation) {
  return {.policy = floats_of(invocation[Struct::kPolicy]),
          .old = grpo.old ? floats_of(invocation[Struct::kOld]) : nullptr,
          .reference = grpo.reference ? floats_of(invocation[Struct::kReference]) : nullptr,
          .weights = floats_of(invocation[Struct::kWeights]),
          .advantages = floats_of(invocation[Struct::kAdvantages]),
          .bounds = integers_of(invocation[Struct::kBounds]),
          .segments = invocation[Struct::kAdvantages].elements(),
          .epsilon = grpo.epsilon,
          .epsilon_high = grpo.epsilon_high,
          .delta = grpo.delta,
          .beta = grpo.beta,
          .sequence = grpo.sequence,
          .corrected = grpo.corrected};
}

void run(const Grpo& grpo, const Invocation& invocation, CudaContext& context) {
  grpo_loss(grpo_run(grpo, invocation),
            {.inverse_tokens = floats_of(invocation[Grpo::kInverseTokens]),
             .inverse_sequences = floats_of(invocation[Grpo::kInverseSequences]),
             .terms = floats_of(invocation[Grpo::kTerms]),
             .measures = floats_of(invocation[Grpo::kMeasures]),
             .loss = floats_of(invocation[Grpo::kLoss])},
            context.stream.get());
}

void run(const GrpoGrad& grad, const Invocation& invocation, CudaContext& context) {
  const Buffer& dpolicy = invocation[GrpoGrad::kDPolicy];
  grpo_grad(grpo_run(grad, invocation), floats_of(dpolicy), dpolicy.elements(),
            context.stream.get());
}

}  // namespace

SNUG_CUDA_KIND(Grpo);
SNUG_CUDA_KIND(GrpoGrad);

}  // namespace snug::backends::cuda
