#include "backends/cpu/optimizer/kernels/lion.h"

#include "backends/cpu/kernels/element_table.h"
#include "backends/cpu/kernels/lanes.h"

namespace snug::backends::cpu::SNUG_ISA {
namespace {

SNUG_INLINE Float16Lanes sign(Float16Lanes x) {
  const Float16Lanes negative = select(x < splat(0.0F), splat(-1.0F), splat(0.0F));
  return select(x > splat(0.0F), splat(1.0F), negative);
}

template <typename G, typename W>
void step_lion(const LionStep& step_of_all, const LionRun& run) {
  const LionStep step = step_of_all;  // a local copy, which the weights cannot alias
  const G* gradient = static_cast<const G*>(run.gradient);
  W* weight = static_cast<W*>(run.weight);
  float* momentum = run.momentum;
  float* master = run.master;
  for_each_lanes(run.n, [&](int64_t i, auto part) {
    const Float16Lanes g = load(gradient + i, part) * step.factor;
    const Float16Lanes old = load(momentum + i, part);
    const Float16Lanes mean = old * step.beta1 + g * (1.0F - step.beta1);
    const Float16Lanes next = load(master + i, part) * step.keep - sign(mean) * step.learning_rate;
    store(momentum + i, old * step.beta2 + g * (1.0F - step.beta2), part);
    store(master + i, next, part);
    if constexpr (sizeof(W) != sizeof(float)) store(weight + i, next, part);
  });
}

}  // namespace

extern const LionKernels kLionKernels;
const LionKernels kLionKernels = {
    .step = SNUG_BY_TWO_ELEMENTS(step_lion),
};

}  // namespace snug::backends::cpu::SNUG_ISA
