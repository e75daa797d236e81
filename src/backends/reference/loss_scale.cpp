#include "program/kinds/loss/loss_scale.h"
#include "backends/formulas/loss_scale_step.h"
#include "backends/reference/elements.h"
#include "backends/reference/kinds.h"

namespace snug::backends::reference {
namespace {

using program::ScaleBy;
using program::ScaledClipFactor;

template <typename T>
void run(const ScaleBy& scale_by, const Invocation& invocation) {
  const Floats<T> x(invocation[ScaleBy::kX]);
  const Floats<T> y(invocation[ScaleBy::kY]);
  const T scale = Floats<T>(invocation[ScaleBy::kScale])[0];
  for (int64_t i = 0; i < x.count(); ++i) y.set(i, scale_by.divides ? x[i] / scale : x[i] * scale);
}

template <typename T>
void run(const ScaledClipFactor& clip, const Invocation& invocation) {
  const Floats<T> scale(invocation[ScaledClipFactor::kScale]);
  const Floats<T> counts(invocation[ScaledClipFactor::kCounts]);
  const LossScaleState<T> state{.scale = scale[0],
                                .finite_steps = counts[program::kFiniteSteps],
                                .skipped_steps = counts[program::kSkippedSteps],
                                .tolerated_steps = counts[program::kToleratedSteps]};
  const T norm = Floats<T>(invocation[ScaledClipFactor::kScaledNorm])[0] / state.scale;
  Floats<T>(invocation[ScaledClipFactor::kNorm]).set(0, norm);
  Floats<T>(invocation[ScaledClipFactor::kFactor])
      .set(0, scaled_clip_factor(clip, norm, state.scale));
  const LossScaleState<T> next = after_step(clip, state, std::isfinite(norm));
  scale.set(0, next.scale);
  counts.set(program::kFiniteSteps, next.finite_steps);
  counts.set(program::kSkippedSteps, next.skipped_steps);
  counts.set(program::kToleratedSteps, next.tolerated_steps);
}

}  // namespace

SNUG_REFERENCE_KIND(ScaleBy);
SNUG_REFERENCE_KIND(ScaledClipFactor);

}  // namespace snug::backends::reference
