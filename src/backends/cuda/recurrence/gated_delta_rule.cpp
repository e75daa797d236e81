#include "backends/cuda/recurrence/kernels/gated_delta_rule.h"

#include "backends/cuda/kind_functions.h"
#include "backends/cuda/product/matrices.h"
#include "backends/cuda/recurrence/delta_sizes.h"
#include "program/kinds/recurrence/gated_delta_rule.h"

namespace snug::backends::cuda {
namespace {

using program::GatedDeltaRule;
using program::GatedDeltaRuleGrad;

template <typename Struct>
DeltaRuleRun run_of(const Struct& rule, const Invocation& invocation, int64_t scratch_floats) {
  auto* scratch = invocation.workspace.as<float>();
  return {.sizes = delta_sizes(rule, invocation),
          .q = matrix_of(invocation[Struct::kQ]).operand,
          .k = matrix_of(invocation[Struct::kK]).operand,
          .v = matrix_of(invocation[Struct::kV]).operand,
          .g = matrix_of(invocation[Struct::kG]).operand,
          .beta = matrix_of(invocation[Struct::kBeta]).operand,
          .bounds = integers_of(invocation[Struct::kBounds]),
          .o = {},
          .slots = nullptr,
          .state = {},
          .scratch = scratch,
          .taps = reinterpret_cast<int32_t*>(scratch + scratch_floats)};
}

void run(const GatedDeltaRule& rule, const Invocation& invocation, CudaContext& context) {
  DeltaRuleRun run = run_of(rule, invocation, delta_sizes(rule, invocation).forward_scratch());
  run.o = matrix_of(invocation[GatedDeltaRule::kO]).operand;
  if (rule.cached) {
    run.slots = integers_of(invocation[GatedDeltaRule::kSlots]);
    run.state = matrix_of(invocation[GatedDeltaRule::kState]).operand;
  }
  gated_delta_rule(run, context.stream.get());
}

void run(const GatedDeltaRuleGrad& rule, const Invocation& invocation, CudaContext& context) {
  const int64_t floats = delta_sizes(rule, invocation).backward_scratch();
  gated_delta_rule_grad({.inputs = run_of(rule, invocation, floats),
                         .d_o = matrix_of(invocation[GatedDeltaRuleGrad::kDO]).operand,
                         .dq = matrix_of(invocation[GatedDeltaRuleGrad::kDQ]).operand,
                         .dk = matrix_of(invocation[GatedDeltaRuleGrad::kDK]).operand,
                         .dv = matrix_of(invocation[GatedDeltaRuleGrad::kDV]).operand,
                         .dg = matrix_of(invocation[GatedDeltaRuleGrad::kDG]).operand,
                         .dbeta = matrix_of(invocation[GatedDeltaRuleGrad::kDBeta]).operand},
                        context.stream.get());
}

}  // namespace

SNUG_CUDA_KIND(GatedDeltaRule);
SNUG_CUDA_KIND(GatedDeltaRuleGrad);

}  // namespace snug::backends::cuda
