#include <array>
#include <cmath>

#include "backends/cpu/kernels.h"
#include "backends/cpu/kind_functions.h"
#include "backends/cpu/rows.h"
#include "backends/formulas/decayed_share.h"
#include "backends/operation_checks.h"
#include "program/kinds/optimizer/lion.h"

namespace snug::backends::cpu {
namespace {

using program::Lion;

LionStep step_of(const Lion& lion, const Invocation& invocation) {
  const float rate = *invocation[Lion::kLearningRate].as<const float>();
  return {.factor = *invocation[Lion::kFactor].as<const float>(),
          .learning_rate = rate,
          .keep = decayed_share(rate, lion.weight_decay),
          .beta1 = lion.beta1,
          .beta2 = lion.beta2};
}

bool supports(const Lion& lion, const program::OperationView& view, const CpuContext&) {
  return are_floats<Lion>(view, {Lion::kGradient, Lion::kWeight}) &&
         view[Lion::kMomentum].dtype == base::DType::f32 &&
         view[lion.has_master ? Lion::kMaster : Lion::kWeight].dtype == base::DType::f32;
}

void run(const Lion& lion, const Invocation& invocation, CpuContext& context) {
  const LionStep step = step_of(lion, invocation);
  const std::array tensors{one_row_of(invocation[Lion::kGradient]),
                           one_row_of(invocation[Lion::kWeight]),
                           one_row_of(invocation[Lion::kMomentum]),
                           one_row_of(invocation[lion.has_master ? Lion::kMaster : Lion::kWeight])};
  if (std::isnan(step.factor)) return;
  const auto advance = context.kernels.lion->step[tensors[0].element][tensors[1].element];
  parallel_elements(tensors, [&](auto at, int64_t, int64_t n) {
    advance(step, {.gradient = at[0],
                   .weight = at[1],
                   .momentum = reinterpret_cast<float*>(at[2]),
                   .master = reinterpret_cast<float*>(at[3]),
                   .n = n});
  });
}

}  // namespace

SNUG_CPU_KIND(Lion, .supports = supports);

}  // namespace snug::backends::cpu
