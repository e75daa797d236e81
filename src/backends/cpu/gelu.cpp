#include "backends/cpu/kernels.h"
#include "backends/cpu/kind_functions.h"
#include "backends/cpu/rows.h"

namespace snug::backends::cpu {
namespace {

using program::Gelu;
using program::GeluGrad;

void run(const Gelu& gelu, const Invocation& invocation, CpuContext& context) {
  const std::array tensors{rows_of(invocation[Gelu::kX]), rows_of(invocation[Gelu::kY])};
  const auto forward =
      context.kernels.elementwise->gelu[gelu.tanh][tensors[0].element][tensors[1].element];
  parallel_elements(tensors, [&](auto at, int64_t, int64_t n) { forward(at[0], at[1], n); });
}

void run(const GeluGrad& grad, const Invocation& invocation, CpuContext& context) {
  const std::array tensors{rows_of(invocation[GeluGrad::kDY]), rows_of(invocation[GeluGrad::kX]),
                           rows_of(invocation[GeluGrad::kDX])};
  const auto backward =
      context.kernels.elementwise
          ->gelu_grad[grad.tanh][tensors[0].element][tensors[1].element][tensors[2].element];
  parallel_elements(tensors,
                    [&](auto at, int64_t, int64_t n) { backward(at[0], at[1], at[2], n); });
}

}  // namespace

SNUG_CPU_KIND(Gelu);
SNUG_CPU_KIND(GeluGrad);

}  // namespace snug::backends::cpu
