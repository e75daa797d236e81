#include "program/kinds/loss/loss_scale.h"
#include "backends/cpu/kind_functions.h"
#include "backends/formulas/loss_scale_step.h"
#include "backends/operation_checks.h"

namespace snug::backends::cpu {
namespace {

using program::ScaleBy;
using program::ScaledClipFactor;

void run(const ScaleBy& scale_by, const Invocation& invocation, CpuContext&) {
  const auto* x = invocation[ScaleBy::kX].as<const float>();
  auto* y = invocation[ScaleBy::kY].as<float>();
  const float scale = *invocation[ScaleBy::kScale].as<const float>();
  for (int64_t i = 0; i < invocation[ScaleBy::kX].elements(); ++i)
    y[i] = scale_by.divides ? x[i] / scale : x[i] * scale;
}

void run(const ScaledClipFactor& clip, const Invocation& invocation, CpuContext&) {
  auto* scale = invocation[ScaledClipFactor::kScale].as<float>();
  auto* counts = invocation[ScaledClipFactor::kCounts].as<float>();
  const LossScaleState<float> state{.scale = *scale,
                                    .finite_steps = counts[program::kFiniteSteps],
                                    .skipped_steps = counts[program::kSkippedSteps],
                                    .tolerated_steps = counts[program::kToleratedSteps]};
  const float norm = *invocation[ScaledClipFactor::kScaledNorm].as<const float>() / state.scale;
  *invocation[ScaledClipFactor::kNorm].as<float>() = norm;
  *invocation[ScaledClipFactor::kFactor].as<float>() = scaled_clip_factor(clip, norm, state.scale);
  const LossScaleState<float> next = after_step(clip, state, std::isfinite(norm));
  *scale = next.scale;
  counts[program::kFiniteSteps] = next.finite_steps;
  counts[program::kSkippedSteps] = next.skipped_steps;
  counts[program::kToleratedSteps] = next.tolerated_steps;
}

}  // namespace

SNUG_CPU_KIND(ScaleBy);
SNUG_CPU_KIND(ScaledClipFactor);

}  // namespace snug::backends::cpu
