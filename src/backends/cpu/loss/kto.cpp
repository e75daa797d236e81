// A micro-batch has few examples, so one thread does them one after another, in fp64, since an
// example's loss is a small difference of large sums.
#include <algorithm>
#include <array>

#include "backends/cpu/kind_functions.h"
#include "backends/cpu/rows.h"
#include "backends/formulas/labelled_answer.h"
#include "program/kinds/loss/kto.h"

namespace snug::backends::cpu {
namespace {

using program::KlEstimate;
using program::Kto;
using program::KtoGrad;

using Weights = LabelWeights<double>;

// Calls f(example, its label, and the log-probability and ratio of its segment 2e + `side`) for
// every example e in the batch.
template <typename Struct, typename F>
void for_each_example(const Struct&, const Invocation& invocation, int64_t side, F&& f) {
  const auto* policy = invocation[Struct::kPolicy].template as<const float>();
  const auto* reference = invocation[Struct::kReference].template as<const float>();
  const Buffer& of_labels = invocation[Struct::kLabels];
  const int32_t* labels = integers_of(of_labels);
  for (int64_t e = 0; e < of_labels.elements(); ++e) {
    if (labels[e] == 0) continue;
    const double value = policy[2 * e + side];
    f(e, labels[e], value, value - static_cast<double>(reference[2 * e + side]));
  }
}

double factor_of(const Buffer& buffer) { return *buffer.as<const float>(); }

template <typename Struct>
Weights weights_in(const Struct& kto, const Invocation& invocation) {
  const auto* sums = invocation[Struct::kKlSums].template as<const float>();
  return {kto.beta, kto.desirable_weight, kto.undesirable_weight,
          divergence_of<double>(sums[0], sums[1])};
}

void run(const KlEstimate& estimate, const Invocation& invocation, CpuContext&) {
  double sum = 0;
  float count = 0;
  for_each_example(estimate, invocation, 1, [&](int64_t, int32_t, double, double ratio) {
    sum += ratio;
    count += 1.0F;
  });
  auto* sums = invocation[KlEstimate::kSums].as<float>();
  sums[0] = static_cast<float>(sum);
  sums[1] = count;
}

void run(const Kto& kto, const Invocation& invocation, CpuContext&) {
  const Weights weights = weights_in(kto, invocation);
  double loss = 0;
  double divergence = 0;
  std::array<double, 2> rewards{};  // the sums of the desirable and of the undesirable examples
  std::array<double, 2> policies{};
  for_each_example(kto, invocation, 0, [&](int64_t, int32_t label, double policy, double ratio) {
    const size_t side = label > 0 ? 0 : 1;
    loss += weights.loss(label, ratio);
    divergence += weights.kl;
    rewards[side] += weights.beta * ratio;
    policies[side] += policy;
  });
  const double inverse_pairs = factor_of(invocation[Kto::kInversePairs]);
  const std::array inverse{factor_of(invocation[Kto::kInverseDesirable]),
                           factor_of(invocation[Kto::kInverseUndesirable])};
  const std::array<double, program::kLabelMeasures.size()> measures{
      rewards[0] * inverse[0],
      rewards[1] * inverse[1],
      rewards[0] * inverse[0] - rewards[1] * inverse[1],
      policies[0] * inverse[0],
      policies[1] * inverse[1],
      divergence * inverse_pairs};
  auto* measured = invocation[Kto::kMeasures].as<float>();
  std::ranges::transform(measures, measured,
                         [](double value) { return static_cast<float>(value); });
  *invocation[Kto::kLoss].as<float>() = static_cast<float>(loss * inverse_pairs);
}

void run(const KtoGrad& grad, const Invocation& invocation, CpuContext&) {
  const Weights weights = weights_in(grad, invocation);
  const double inverse_pairs = factor_of(invocation[KtoGrad::kInversePairs]);
  const Buffer& written = invocation[KtoGrad::kDPolicy];
  auto* dpolicy = written.as<float>();
  std::fill_n(dpolicy, written.elements(), 0.0F);
  for_each_example(grad, invocation, 0, [&](int64_t e, int32_t label, double, double ratio) {
    dpolicy[2 * e] = static_cast<float>(weights.slope(label, ratio) * inverse_pairs);
  });
}

}  // namespace

SNUG_CPU_KIND(KlEstimate);
SNUG_CPU_KIND(Kto);
SNUG_CPU_KIND(KtoGrad);

}  // namespace snug::backends::cpu
