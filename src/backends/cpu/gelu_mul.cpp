#include "backends/cpu/kernels.h"
#include "backends/cpu/kind_functions.h"
#include "backends/cpu/rows.h"
#include "backends/operation_checks.h"

namespace snug::backends::cpu {
namespace {

using program::GeluMul;
using program::GeluMulGrad;

bool supports(const GeluMul&, const program::OperationView& view, const CpuContext&) {
  return is_all_of(view, view[GeluMul::kY].dtype);
}

void run(const GeluMul& gelu_mul, const Invocation& invocation, CpuContext& context) {
  const std::array tensors{rows_of(invocation[GeluMul::kGate]), rows_of(invocation[GeluMul::kUp]),
                           rows_of(invocation[GeluMul::kY])};
  const auto forward = context.kernels.gelu_mul->forward[gelu_mul.tanh][tensors[0].element];
  parallel_elements(tensors, [&](auto at, int64_t, int64_t n) { forward(at[0], at[1], at[2], n); });
}

bool supports(const GeluMulGrad&, const program::OperationView& view, const CpuContext&) {
  return is_all_of(view, view[GeluMulGrad::kDY].dtype);
}

void run(const GeluMulGrad& grad, const Invocation& invocation, CpuContext& context) {
  const std::array tensors{
      rows_of(invocation[GeluMulGrad::kDY]), rows_of(invocation[GeluMulGrad::kGate]),
      rows_of(invocation[GeluMulGrad::kUp]), rows_of(invocation[GeluMulGrad::kDGate]),
      rows_of(invocation[GeluMulGrad::kDUp])};
  const auto backward = context.kernels.gelu_mul->backward[grad.tanh][tensors[0].element];
  parallel_elements(tensors, [&](auto at, int64_t, int64_t n) {
    backward({at[0], at[1], at[2], at[3], at[4], n});
  });
}

}  // namespace

SNUG_CPU_KIND(GeluMul, .supports = supports);
SNUG_CPU_KIND(GeluMulGrad, .supports = supports);

}  // namespace snug::backends::cpu
