#include "backends/cpu/attention/softmax_rows.h"

#include <algorithm>

#include "backends/cpu/rows.h"
#include "base/error.h"

namespace snug::backends::cpu {
float logit_at(const void* logits, Element element, int64_t index) {
  return value_at(logits, element, index);
}

Statistics statistics_of(const LogitRun& run, const SoftmaxKernels& kernels) {
  Statistics result{};
  kernels.statistics[run.element](run.data, run.count, &result.largest, &result.sum);
  return result;
}

float sum_of(const LogitRun& run, const SoftmaxKernels& kernels) {
  return kernels.sum[run.element](run.data, run.count);
}

Statistics merged(const Statistics& a, const Statistics& b) {
  const float largest = std::max(a.largest, b.largest);
  return {largest, a.sum * std::exp(a.largest - largest) + b.sum * std::exp(b.largest - largest)};
}

void make_gradient(const LogitRun& run, const GradientRun& gradient,
                   const SoftmaxKernels& kernels) {
  const bool holds_target = gradient.target >= 0 && gradient.target < run.count;
  const float logit = holds_target ? logit_at(run.data, run.element, gradient.target) : 0.0F;
  float scale_of_target = gradient.scale;
  SNUG_CHECK(gradient.cap == 0.0F || run.element == kF32, "capped logits of another type than f32");
  if (gradient.cap > 0.0F) {
    const float share = logit / gradient.cap;
    scale_of_target *= 1.0F - share * share;
  }
  const float of_each = gradient.smoothing.of_each();
  if (gradient.smoothing.is_there()) {
    kernels.smoothed_gradient[run.element][gradient.element](
        run.data, run.count, {gradient.lse, gradient.scale, of_each, gradient.cap}, gradient.data);
  } else if (gradient.cap > 0.0F) {
    kernels.capped_gradient[gradient.element](static_cast<const float*>(run.data), run.count,
                                              {gradient.lse, gradient.scale, gradient.cap},
                                              gradient.data);
  } else {
    kernels.gradient[run.element][gradient.element](run.data, run.count, gradient.lse,
                                                    gradient.scale, gradient.data);
  }
  if (holds_target)
    set_value(gradient.data, gradient.element, gradient.target,
              (std::exp(logit - gradient.lse) - gradient.smoothing.of_target() - of_each) *
                  scale_of_target);
}

int64_t checked_target(int32_t target, int64_t vocab) {
  SNUG_CHECK(target < vocab, "target {} of {}", target, vocab);
  return target;
}

TokenFactors factors_of(const Buffer& inverse_tokens) {
  return {inverse_tokens.as<const float>(), inverse_tokens.elements() > 1 ? 1 : 0};
}

void sum_losses(const float* losses, int64_t tokens, const TokenFactors& factors,
                const Buffer& loss) {
  const bool is_each = factors.step > 0;
  double sum = 0;
  for (int64_t t = 0; t < tokens; ++t)
    sum += static_cast<double>(losses[t]) * (is_each ? static_cast<double>(factors[t]) : 1.0);
  *loss.as<float>() = static_cast<float>(is_each ? sum : sum * static_cast<double>(factors[0]));
}

}  // namespace snug::backends::cpu
