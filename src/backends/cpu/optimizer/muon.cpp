#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "backends/cpu/kernels.h"
#include "backends/cpu/kind_functions.h"
#include "backends/cpu/rows.h"
#include "backends/formulas/decayed_share.h"
#include "backends/operation_checks.h"
#include "program/kinds/optimizer/muon.h"

namespace snug::backends::cpu {
namespace {

using program::MuonMomentum;
using program::MuonStep;
using program::Normalize;

bool supports(const MuonMomentum&, const program::OperationView& view, const CpuContext&) {
  return are_floats<MuonMomentum>(view, {MuonMomentum::kGradient, MuonMomentum::kDirection}) &&
         are_f32<MuonMomentum>(view, {MuonMomentum::kMomentum});
}

void run(const MuonMomentum& muon, const Invocation& invocation, CpuContext& context) {
  const float factor = *invocation[MuonMomentum::kFactor].as<const float>();
  const std::array tensors{one_row_of(invocation[MuonMomentum::kGradient]),
                           one_row_of(invocation[MuonMomentum::kMomentum]),
                           one_row_of(invocation[MuonMomentum::kDirection])};
  const int64_t direction_bytes = tensors[2].element_bytes();
  const MuonMomentumNumbers numbers{.factor = factor,
                                    .share = 1.0F - muon.momentum,
                                    .gradient_share = muon.nesterov ? 1.0F - muon.momentum : 0.0F};
  const auto advance = context.kernels.muon->advance[tensors[0].element][tensors[2].element];
  parallel_elements(tensors, [&](auto at, int64_t, int64_t n) {
    if (std::isnan(factor)) {
      std::memset(at[2], 0, static_cast<size_t>(n * direction_bytes));
      return;
    }
    advance(numbers, {.gradient = at[0],
                      .momentum = reinterpret_cast<float*>(at[1]),
                      .direction = at[2],
                      .n = n});
  });
}

// One double per block of elements.
int64_t workspace_bytes(const Normalize&, const program::OperationView& view, const CpuContext&) {
  return ceil_div(view[Normalize::kX].shape.elements(), kElementsPerTask) * int64_t{sizeof(double)};
}

float rounded_to(Element element, float value) {
  if (element == kF32) return value;
  return element == kBf16 ? base::to_float(base::to_bfloat16(value))
                          : base::to_float(base::to_float16(value));
}

void run(const Normalize& normalize, const Invocation& invocation, CpuContext& context) {
  const std::array tensors{one_row_of(invocation[Normalize::kX]),
                           one_row_of(invocation[Normalize::kY])};
  const Rows& x = tensors[0];
  auto* partials = invocation.workspace.as<double>();
  const auto sum_of_squares = context.kernels.optimizer->sum_of_squares[x.element];
  const int64_t blocks = ceil_div(x.columns, kElementsPerTask);
  parallel_for(blocks, [&](int64_t block) {
    const int64_t begin = block * kElementsPerTask;
    const int64_t n = std::min(kElementsPerTask, x.columns - begin);
    partials[block] = static_cast<double>(sum_of_squares(x.at(0, begin), n));
  });
  double squares = 0;
  for (int64_t block = 0; block < blocks; ++block) squares += partials[block];
  const float norm = rounded_to(x.element, static_cast<float>(std::sqrt(squares)));
  const float divisor = rounded_to(x.element, std::max(norm, normalize.epsilon));
  const auto multiply = context.kernels.elementwise->scale[x.element][tensors[1].element];
  parallel_elements(
      tensors, [&](auto at, int64_t, int64_t n) { multiply(at[0], at[1], n, 1.0F / divisor); });
}

bool supports(const MuonStep& step, const program::OperationView& view, const CpuContext&) {
  return are_floats<MuonStep>(view, {MuonStep::kDirection, MuonStep::kWeight}) &&
         are_f32<MuonStep>(view, {step.has_master ? MuonStep::kMaster : MuonStep::kWeight});
}

void run(const MuonStep& step, const Invocation& invocation, CpuContext& context) {
  const float factor = *invocation[MuonStep::kFactor].as<const float>();
  const float rate = *invocation[MuonStep::kLearningRate].as<const float>();
  const std::array tensors{
      one_row_of(invocation[MuonStep::kDirection]), one_row_of(invocation[MuonStep::kWeight]),
      one_row_of(invocation[step.has_master ? MuonStep::kMaster : MuonStep::kWeight])};
  if (std::isnan(factor)) return;
  const MuonStepNumbers numbers{.keep = decayed_share(rate, step.weight_decay),
                                .rate = rate * step.rate_scale};
  const int64_t left = step.elements - invocation[MuonStep::kWeight].first;
  const auto advance = context.kernels.muon->step[tensors[0].element][tensors[1].element];
  parallel_elements(tensors, [&](auto at, int64_t first, int64_t n) {
    if (first >= left) return;
    advance(numbers, {.direction = at[0],
                      .weight = at[1],
                      .master = reinterpret_cast<float*>(at[2]),
                      .n = std::min(n, left - first)});
  });
}

}  // namespace

SNUG_CPU_KIND(MuonMomentum, .supports = supports);
SNUG_CPU_KIND(Normalize, .workspace_bytes = workspace_bytes);
SNUG_CPU_KIND(MuonStep, .supports = supports);

}  // namespace snug::backends::cpu
