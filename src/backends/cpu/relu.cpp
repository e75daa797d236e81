#include "backends/cpu/kernels.h"
#include "backends/cpu/kind_functions.h"
#include "backends/cpu/rows.h"

namespace snug::backends::cpu {
namespace {

using program::Relu;
using program::ReluGrad;

void run(const Relu&, const Invocation& invocation, CpuContext& context) {
  const std::array tensors{rows_of(invocation[Relu::kX]), rows_of(invocation[Relu::kY])};
  const auto forward = context.kernels.elementwise->relu[tensors[0].element][tensors[1].element];
  parallel_elements(tensors, [&](auto at, int64_t, int64_t n) { forward(at[0], at[1], n); });
}

void run(const ReluGrad&, const Invocation& invocation, CpuContext& context) {
  const std::array tensors{rows_of(invocation[ReluGrad::kDY]), rows_of(invocation[ReluGrad::kY]),
                           rows_of(invocation[ReluGrad::kDX])};
  const auto backward = context.kernels.elementwise
                            ->relu_grad[tensors[0].element][tensors[1].element][tensors[2].element];
  parallel_elements(tensors,
                    [&](auto at, int64_t, int64_t n) { backward(at[0], at[1], at[2], n); });
}

}  // namespace

SNUG_CPU_KIND(Relu);
SNUG_CPU_KIND(ReluGrad);

}  // namespace snug::backends::cpu
