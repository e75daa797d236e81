#include "backends/cuda/loss/kernels/dpo.h"

#include "backends/cuda/kind_functions.h"
#include "backends/cuda/product/matrices.h"
#include "program/kinds/loss/dpo.h"

namespace snug::backends::cuda {
namespace {

using program::Dpo;
using program::DpoGrad;

template <typename Struct>
DpoRun run_of(const Struct& dpo, const Invocation& invocation) {
  const Buffer& policy = invocation[Struct::kPolicy];
  return {floats_of(policy),
          dpo.reference ? floats_of(invocation[Struct::kReference]) : nullptr,
          integers_of(invocation[Struct::kBounds]),
          floats_of(invocation[Struct::kInversePairs]),
          dpo.means ? integers_of(invocation[Struct::kAnswers]) : nullptr,
          policy.elements() / 2,
          dpo.beta,
          dpo.form,
          dpo.label_smoothing,
          dpo.target_margin};
}

void run(const Dpo& dpo, const Invocation& invocation, CudaContext& context) {
  dpo_loss(run_of(dpo, invocation), floats_of(invocation[Dpo::kMeasures]),
           floats_of(invocation[Dpo::kLoss]), context.stream.get());
}

void run(const DpoGrad& grad, const Invocation& invocation, CudaContext& context) {
  dpo_grad(run_of(grad, invocation), floats_of(invocation[DpoGrad::kDPolicy]),
           context.stream.get());
}

}  // namespace

SNUG_CUDA_KIND(Dpo);
SNUG_CUDA_KIND(DpoGrad);

}  // namespace snug::backends::cuda
