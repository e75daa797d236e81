#include "backends/cpu/kernels.h"
#include "backends/cpu/kind_functions.h"
#include "backends/cpu/rows.h"

namespace snug::backends::cpu {
namespace {

using program::Softcap;
using program::SoftcapGrad;

void run(const Softcap& softcap, const Invocation& invocation, CpuContext& context) {
  const std::array tensors{rows_of(invocation[Softcap::kX]), rows_of(invocation[Softcap::kY])};
  const auto forward = context.kernels.elementwise->softcap[tensors[0].element][tensors[1].element];
  parallel_elements(tensors,
                    [&](auto at, int64_t, int64_t n) { forward(at[0], at[1], n, softcap.cap); });
}

void run(const SoftcapGrad& grad, const Invocation& invocation, CpuContext& context) {
  const std::array tensors{rows_of(invocation[SoftcapGrad::kDY]),
                           rows_of(invocation[SoftcapGrad::kY]),
                           rows_of(invocation[SoftcapGrad::kDX])};
  const auto backward =
      context.kernels.elementwise
          ->softcap_grad[tensors[0].element][tensors[1].element][tensors[2].element];
  parallel_elements(
      tensors, [&](auto at, int64_t, int64_t n) { backward(at[0], at[1], at[2], n, grad.cap); });
}

}  // namespace

SNUG_CPU_KIND(Softcap);
SNUG_CPU_KIND(SoftcapGrad);

}  // namespace snug::backends::cpu
