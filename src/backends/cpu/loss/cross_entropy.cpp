#include <cstring>

#include "backends/cpu/attention/softmax_rows.h"
#include "backends/cpu/kind_functions.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/rows.h"
#include "backends/note_extent.h"
#include "program/kinds/loss/cross_entropy.h"

namespace snug::backends::cpu {
namespace {

void run(const program::CrossEntropy& loss, const Invocation& invocation, CpuContext& context) {
  const Rows logits = rows_of(invocation[program::CrossEntropy::kLogits]);
  const int32_t* targets = integers_of(invocation[program::CrossEntropy::kTargets]);
  auto* losses = invocation[program::CrossEntropy::kLosses].as<float>();
  const SoftmaxKernels& kernels = *context.kernels.softmax;
  const LossSmoothing smoothing{loss.smoothing, logits.columns};
  note_rows(invocation, program::CrossEntropy::kTargets);
  parallel_for(logits.rows, [&](int64_t t) {
    losses[t] = 0;
    if (targets[t] < 0) return;
    const int64_t target = checked_target(targets[t], logits.columns);
    const LogitRun row{logits.at(t), logits.element, logits.columns};
    float logit = logit_at(row.data, row.element, target);
    if (smoothing.is_there()) logit = smoothing.logit(logit, sum_of(row, kernels));
    losses[t] = statistics_of(row, kernels).loss(logit);
  });
  sum_losses(losses, logits.rows, factors_of(invocation[program::CrossEntropy::kInverseTokens]),
             invocation[program::CrossEntropy::kLoss]);
}

void run(const program::CrossEntropyGrad& grad, const Invocation& invocation, CpuContext& context) {
  const SoftmaxKernels& kernels = *context.kernels.softmax;
  const Rows logits = rows_of(invocation[program::CrossEntropyGrad::kLogits]);
  const int32_t* targets = integers_of(invocation[program::CrossEntropyGrad::kTargets]);
  const TokenFactors factors = factors_of(invocation[program::CrossEntropyGrad::kInverseTokens]);
  const Rows dlogits = rows_of(invocation[program::CrossEntropyGrad::kDLogits]);
  note_rows(invocation, program::CrossEntropyGrad::kTargets);
  parallel_for(logits.rows, [&](int64_t t) {
    if (targets[t] < 0) {
      std::memset(dlogits.at(t), 0, static_cast<size_t>(dlogits.columns * dlogits.element_bytes()));
      return;
    }
    const LogitRun row{logits.at(t), logits.element, logits.columns};
    make_gradient(row,
                  {.data = dlogits.at(t),
                   .element = dlogits.element,
                   .target = checked_target(targets[t], logits.columns),
                   .lse = statistics_of(row, kernels).lse(),
                   .scale = factors[t],
                   .cap = 0.0F,
                   .smoothing = {grad.smoothing, logits.columns}},
                  kernels);
  });
}

}  // namespace

SNUG_CPU_KIND(CrossEntropy);
SNUG_CPU_KIND(CrossEntropyGrad);

}  // namespace snug::backends::cpu
