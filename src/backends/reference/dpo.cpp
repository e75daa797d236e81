#include <array>

#include "backends/formulas/answer_pair.h"
#include "backends/reference/elements.h"
#include "backends/reference/kinds.h"
#include "program/kinds/loss/dpo.h"

namespace snug::backends::reference {
namespace {

using program::Dpo;
using program::DpoGrad;

// The log-probabilities of the segments, two of which form a pair.
template <typename T, typename Struct>
class Pairs {
 public:
  explicit Pairs(const Struct&, const Invocation& invocation)
      : policy_(invocation[Struct::kPolicy]),
        reference_(invocation[Struct::kReference]),
        bounds_(invocation[Struct::kBounds]) {}

  int64_t count() const { return policy_.count() / 2; }
  bool is_there(int64_t pair) const { return bounds_[4 * pair] < bounds_[4 * pair + 1]; }
  AnswerPair<T> at(int64_t pair) const {
    return {policy_[2 * pair], policy_[2 * pair + 1], reference_[2 * pair],
            reference_[2 * pair + 1]};
  }

 private:
  Floats<T> policy_;
  Floats<T> reference_;
  Integers bounds_;
};

template <typename T>
void run(const Dpo& dpo, const Invocation& invocation) {
  const Pairs<T, Dpo> pairs(dpo, invocation);
  const auto beta = static_cast<T>(dpo.beta);
  std::array<T, program::kPreferenceMeasures.size()> sums{};
  T loss = 0;
  for (int64_t p = 0; p < pairs.count(); ++p) {
    if (!pairs.is_there(p)) continue;
    const AnswerPair<T> pair = pairs.at(p);
    const T margin = pair.margin(beta);
    loss += minus_log_sigmoid(margin);
    const std::array<T, program::kPreferenceMeasures.size()> measures{pair.chosen_reward(beta),
                                                                      pair.rejected_reward(beta),
                                                                      margin > 0 ? T{1} : T{0},
                                                                      margin,
                                                                      pair.chosen,
                                                                      pair.rejected};
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += measures[i];
  }
  const T inverse_pairs = Floats<T>(invocation[Dpo::kInversePairs])[0];
  const Floats<T> measured(invocation[Dpo::kMeasures]);
  for (size_t i = 0; i < sums.size(); ++i)
    measured.set(static_cast<int64_t>(i), sums[i] * inverse_pairs);
  Floats<T>(invocation[Dpo::kLoss]).set(0, loss * inverse_pairs);
}

template <typename T>
void run(const DpoGrad& grad, const Invocation& invocation) {
  const Pairs<T, DpoGrad> pairs(grad, invocation);
  const auto beta = static_cast<T>(grad.beta);
  const T inverse_pairs = Floats<T>(invocation[DpoGrad::kInversePairs])[0];
  const Floats<T> dpolicy(invocation[DpoGrad::kDPolicy]);
  for (int64_t p = 0; p < pairs.count(); ++p) {
    const T slope = pairs.is_there(p)
                        ? beta * sigmoid_of_minus(pairs.at(p).margin(beta)) * inverse_pairs
                        : T{0};
    dpolicy.set(2 * p, -slope);
    dpolicy.set(2 * p + 1, slope);
  }
}

}  // namespace

SNUG_REFERENCE_KIND(Dpo);
SNUG_REFERENCE_KIND(DpoGrad);

}  // namespace snug::backends::reference
