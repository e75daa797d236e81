#include "backends/cpu/kernels.h"
#include "backends/cpu/kind_functions.h"
#include "backends/cpu/rows.h"
#include "backends/operation_checks.h"

namespace snug::backends::cpu {
namespace {

using program::SiluMul;
using program::SiluMulGrad;

bool supports(const SiluMul&, const program::OperationView& view, const CpuContext&) {
  return is_all_of(view, view[SiluMul::kY].dtype);
}

void run(const SiluMul&, const Invocation& invocation, CpuContext& context) {
  const std::array tensors{rows_of(invocation[SiluMul::kGate]), rows_of(invocation[SiluMul::kUp]),
                           rows_of(invocation[SiluMul::kY])};
  const auto forward = context.kernels.silu_mul->forward[tensors[0].element];
  parallel_elements(tensors, [&](auto at, int64_t, int64_t n) { forward(at[0], at[1], at[2], n); });
}

bool supports(const SiluMulGrad&, const program::OperationView& view, const CpuContext&) {
  return is_all_of(view, view[SiluMulGrad::kDY].dtype);
}

void run(const SiluMulGrad&, const Invocation& invocation, CpuContext& context) {
  const std::array tensors{
      rows_of(invocation[SiluMulGrad::kDY]), rows_of(invocation[SiluMulGrad::kGate]),
      rows_of(invocation[SiluMulGrad::kUp]), rows_of(invocation[SiluMulGrad::kDGate]),
      rows_of(invocation[SiluMulGrad::kDUp])};
  const auto backward = context.kernels.silu_mul->backward[tensors[0].element];
  parallel_elements(tensors, [&](auto at, int64_t, int64_t n) {
    backward({at[0], at[1], at[2], at[3], at[4], n});
  });
}

}  // namespace

SNUG_CPU_KIND(SiluMul, .supports = supports);
SNUG_CPU_KIND(SiluMulGrad, .supports = supports);

}  // namespace snug::backends::cpu
