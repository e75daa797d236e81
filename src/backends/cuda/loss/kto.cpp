#include "backends/cuda/loss/kernels/kto.h"

#include "backends/cuda/kind_functions.h"
#include "backends/cuda/product/matrices.h"
#include "program/kinds/loss/kto.h"

namespace snug::backends::cuda {
namespace {

using program::KlEstimate;
using program::Kto;
using program::KtoGrad;

template <typename Struct>
LabelRun label_run(const Struct&, const Invocation& invocation) {
  const Buffer& labels = invocation[Struct::kLabels];
  return {floats_of(invocation[Struct::kPolicy]), floats_of(invocation[Struct::kReference]),
          integers_of(labels), labels.elements()};
}

template <typename Struct>
KtoRun kto_run(const Struct& kto, const Invocation& invocation) {
  return {label_run(kto, invocation),
          floats_of(invocation[Struct::kKlSums]),
          floats_of(invocation[Struct::kInversePairs]),
          kto.beta,
          kto.desirable_weight,
          kto.undesirable_weight};
}

void run(const KlEstimate& estimate, const Invocation& invocation, CudaContext& context) {
  kl_sums(label_run(estimate, invocation), floats_of(invocation[KlEstimate::kSums]),
          context.stream.get());
}

void run(const Kto& kto, const Invocation& invocation, CudaContext& context) {
  kto_loss(kto_run(kto, invocation), floats_of(invocation[Kto::kInverseDesirable]),
           floats_of(invocation[Kto::kInverseUndesirable]), floats_of(invocation[Kto::kMeasures]),
           floats_of(invocation[Kto::kLoss]), context.stream.get());
}

void run(const KtoGrad& grad, const Invocation& invocation, CudaContext& context) {
  kto_grad(kto_run(grad, invocation), floats_of(invocation[KtoGrad::kDPolicy]),
           context.stream.get());
}

}  // namespace

SNUG_CUDA_KIND(KlEstimate);
SNUG_CUDA_KIND(Kto);
SNUG_CUDA_KIND(KtoGrad);

}  // namespace snug::backends::cuda
