#include <algorithm>
#include <array>
#include <optional>

#include "backends/formulas/preference_loss.h"
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
  Pairs(const Struct& dpo, const Invocation& invocation)
      : dpo_(dpo), policy_(invocation[Struct::kPolicy]), bounds_(invocation[Struct::kBounds]) {
    if (dpo.reference) reference_.emplace(invocation[Struct::kReference]);
    if (dpo.means) answers_.emplace(invocation[Struct::kAnswers]);
  }

  int64_t count() const { return policy_.count() / 2; }
  bool is_there(int64_t pair) const { return bounds_[4 * pair] < bounds_[4 * pair + 1]; }
  AnswerPair<T> at(int64_t pair) const {
    AnswerPair<T> found{policy_[2 * pair], policy_[2 * pair + 1], T{0}, T{0}};
    if (reference_) {
      found.reference_chosen = (*reference_)[2 * pair];
      found.reference_rejected = (*reference_)[2 * pair + 1];
    }
    if (answers_) {
      found.chosen_tokens = tokens(2 * pair);
      found.rejected_tokens = tokens(2 * pair + 1);
    }
    return found;
  }
  // In fp64, since some losses are differences that nearly cancel where they are small.
  PairLoss<T> loss(int64_t pair) const {
    const AnswerPair<double> found = at(pair).in_double();
    const PairLoss<double> loss = pair_loss<double>(
        {dpo_.form, static_cast<double>(dpo_.beta), static_cast<double>(dpo_.label_smoothing),
         static_cast<double>(dpo_.target_margin)},
        found.chosen_score(), found.rejected_score());
    return {static_cast<T>(loss.value), static_cast<T>(loss.chosen_slope),
            static_cast<T>(loss.rejected_slope)};
  }

 private:
  T tokens(int64_t segment) const {
    return static_cast<T>(
        std::max<int64_t>(1, (*answers_)[2 * segment + 1] - (*answers_)[2 * segment] - 1));
  }

  const Struct& dpo_;
  Floats<T> policy_;
  std::optional<Floats<T>> reference_;
  Integers bounds_;
  std::optional<Integers> answers_;
};

template <typename T>
void run(const Dpo& dpo, const Invocation& invocation) {
  const Pairs<T, Dpo> pairs(dpo, invocation);
  const auto beta = static_cast<T>(dpo.beta);
  std::array<T, program::kPreferenceMeasures.size()> sums{};
  T loss = 0;
  for (int64_t p = 0; p < pairs.count(); ++p) {
    if (!pairs.is_there(p)) continue;
    const AnswerPair<T> pair = dpo.reference ? pairs.at(p) : pairs.at(p).compared();
    const T margin = pair.margin(beta);
    loss += pairs.loss(p).value;
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
  const T inverse_pairs = Floats<T>(invocation[DpoGrad::kInversePairs])[0];
  const Floats<T> dpolicy(invocation[DpoGrad::kDPolicy]);
  for (int64_t p = 0; p < pairs.count(); ++p) {
    const PairLoss<T> loss = pairs.is_there(p) ? pairs.loss(p) : PairLoss<T>{};
    const AnswerPair<T> pair = pairs.at(p);
    dpolicy.set(2 * p, loss.chosen_slope / pair.chosen_tokens * inverse_pairs);
    dpolicy.set(2 * p + 1, loss.rejected_slope / pair.rejected_tokens * inverse_pairs);
  }
}

}  // namespace

SNUG_REFERENCE_KIND(Dpo);
SNUG_REFERENCE_KIND(DpoGrad);

}  // namespace snug::backends::reference
