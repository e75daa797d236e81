#include <array>

#include "backends/formulas/labelled_answer.h"
#include "backends/reference/elements.h"
#include "backends/reference/kinds.h"
#include "program/kinds/loss/kto.h"

namespace snug::backends::reference {
namespace {

using program::KlEstimate;
using program::Kto;
using program::KtoGrad;

// The log-probabilities of the examples, each of which has two segments.
template <typename T, typename Struct>
class Examples {
 public:
  explicit Examples(const Struct&, const Invocation& invocation)
      : policy_(invocation[Struct::kPolicy]),
        reference_(invocation[Struct::kReference]),
        labels_(invocation[Struct::kLabels]) {}

  int64_t count() const { return policy_.count() / 2; }
  int32_t label(int64_t example) const { return labels_[example]; }
  T policy(int64_t example) const { return policy_[2 * example]; }
  T ratio(int64_t example) const { return ratio_of_segment(2 * example); }
  T other_ratio(int64_t example) const { return ratio_of_segment(2 * example + 1); }

 private:
  T ratio_of_segment(int64_t segment) const { return policy_[segment] - reference_[segment]; }

  Floats<T> policy_;
  Floats<T> reference_;
  Integers labels_;
};

template <typename T, typename Struct>
LabelWeights<T> weights_of(const Struct& kto, const Invocation& invocation) {
  const Floats<T> sums(invocation[Struct::kKlSums]);
  return {static_cast<T>(kto.beta), static_cast<T>(kto.desirable_weight),
          static_cast<T>(kto.undesirable_weight), divergence_of<T>(sums[0], sums[1])};
}

template <typename T>
void run(const KlEstimate& estimate, const Invocation& invocation) {
  const Examples<T, KlEstimate> examples(estimate, invocation);
  T sum = 0;
  T count = 0;
  for (int64_t e = 0; e < examples.count(); ++e) {
    if (examples.label(e) == 0) continue;
    sum += examples.other_ratio(e);
    count += 1;
  }
  const Floats<T> sums(invocation[KlEstimate::kSums]);
  sums.set(0, sum);
  sums.set(1, count);
}

template <typename T>
void run(const Kto& kto, const Invocation& invocation) {
  const Examples<T, Kto> examples(kto, invocation);
  const LabelWeights<T> weights = weights_of<T>(kto, invocation);
  T loss = 0;
  T divergence = 0;
  std::array<T, 2> rewards{};  // the sums of the desirable and of the undesirable examples
  std::array<T, 2> policies{};
  for (int64_t e = 0; e < examples.count(); ++e) {
    const int32_t label = examples.label(e);
    if (label == 0) continue;
    const size_t side = label > 0 ? 0 : 1;
    loss += weights.loss(label, examples.ratio(e));
    divergence += weights.kl;
    rewards[side] += weights.beta * examples.ratio(e);
    policies[side] += examples.policy(e);
  }
  const T inverse_pairs = Floats<T>(invocation[Kto::kInversePairs])[0];
  const std::array<T, 2> inverse{Floats<T>(invocation[Kto::kInverseDesirable])[0],
                                 Floats<T>(invocation[Kto::kInverseUndesirable])[0]};
  const Floats<T> measured(invocation[Kto::kMeasures]);
  measured.set(0, rewards[0] * inverse[0]);
  measured.set(1, rewards[1] * inverse[1]);
  measured.set(2, rewards[0] * inverse[0] - rewards[1] * inverse[1]);
  measured.set(3, policies[0] * inverse[0]);
  measured.set(4, policies[1] * inverse[1]);
  measured.set(5, divergence * inverse_pairs);
  Floats<T>(invocation[Kto::kLoss]).set(0, loss * inverse_pairs);
}

template <typename T>
void run(const KtoGrad& grad, const Invocation& invocation) {
  const Examples<T, KtoGrad> examples(grad, invocation);
  const LabelWeights<T> weights = weights_of<T>(grad, invocation);
  const T inverse_pairs = Floats<T>(invocation[KtoGrad::kInversePairs])[0];
  const Floats<T> dpolicy(invocation[KtoGrad::kDPolicy]);
  for (int64_t e = 0; e < examples.count(); ++e) {
    const int32_t label = examples.label(e);
    const T slope = label == 0 ? T{0} : weights.slope(label, examples.ratio(e));
    dpolicy.set(2 * e, slope * inverse_pairs);
    dpolicy.set(2 * e + 1, T{0});
  }
}

}  // namespace

SNUG_REFERENCE_KIND(KlEstimate);
SNUG_REFERENCE_KIND(Kto);
SNUG_REFERENCE_KIND(KtoGrad);

}  // namespace snug::backends::reference
