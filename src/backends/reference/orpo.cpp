#include <array>

#include "backends/formulas/answer_odds.h"
#include "backends/reference/elements.h"
#include "backends/reference/kinds.h"
#include "program/kinds/loss/orpo.h"

namespace snug::backends::reference {
namespace {

using program::Orpo;
using program::OrpoGrad;

// The mean log-probabilities of the segments, two of which form a pair.
template <typename T, typename Struct>
class OddsOfPairs {
 public:
  explicit OddsOfPairs(const Struct&, const Invocation& invocation)
      : policy_(invocation[Struct::kPolicy]), bounds_(invocation[Struct::kBounds]) {}

  int64_t count() const { return policy_.count() / 2; }
  bool is_there(int64_t pair) const { return bounds_[4 * pair] < bounds_[4 * pair + 1]; }
  // The number of tokens that a segment's answer predicts.
  T tokens(int64_t segment) const {
    return static_cast<T>(std::max(1, bounds_[2 * segment + 1] - bounds_[2 * segment] - 1));
  }
  AnswerOdds<T> at(int64_t pair) const {
    const std::array<int32_t, 4> bounds{bounds_[4 * pair], bounds_[4 * pair + 1],
                                        bounds_[4 * pair + 2], bounds_[4 * pair + 3]};
    return answer_odds<T>(policy_[2 * pair], policy_[2 * pair + 1], bounds.data());
  }

 private:
  Floats<T> policy_;
  Integers bounds_;
};

template <typename T>
void run(const Orpo& orpo, const Invocation& invocation) {
  const OddsOfPairs<T, Orpo> pairs(orpo, invocation);
  const Floats<T> nll(invocation[Orpo::kNll]);
  const auto beta = static_cast<T>(orpo.beta);
  std::array<T, program::kOddsMeasures.size()> sums{};
  T nll_sum = 0;
  for (int64_t p = 0; p < pairs.count(); ++p) {
    if (!pairs.is_there(p)) continue;
    const AnswerOdds<T> odds = pairs.at(p);
    nll_sum += nll[2 * p];
    sums[0] += beta * odds.chosen;
    sums[1] += beta * odds.rejected;
    sums[2] += odds.chosen > odds.rejected ? T{1} : T{0};
    sums[3] += beta * (odds.chosen - odds.rejected);
    sums[4] += odds.chosen;
    sums[5] += odds.rejected;
    sums[7] -= minus_log_sigmoid(odds.log_odds());
    sums[8] += odds.log_odds();
  }
  const T inverse_pairs = Floats<T>(invocation[Orpo::kInversePairs])[0];
  for (T& sum : sums) sum *= inverse_pairs;
  sums[6] = nll_sum * Floats<T>(invocation[Orpo::kInverseTokens])[0];
  const Floats<T> measured(invocation[Orpo::kMeasures]);
  for (size_t i = 0; i < sums.size(); ++i) measured.set(static_cast<int64_t>(i), sums[i]);
  Floats<T>(invocation[Orpo::kLoss]).set(0, sums[6] - beta * sums[7]);
}

template <typename T>
void run(const OrpoGrad& grad, const Invocation& invocation) {
  const OddsOfPairs<T, OrpoGrad> pairs(grad, invocation);
  const T factor = static_cast<T>(grad.beta) * Floats<T>(invocation[OrpoGrad::kInversePairs])[0];
  const T inverse_tokens = Floats<T>(invocation[OrpoGrad::kInverseTokens])[0];
  const Floats<T> dpolicy(invocation[OrpoGrad::kDPolicy]);
  const Floats<T> dnll(invocation[OrpoGrad::kDNll]);
  for (int64_t p = 0; p < pairs.count(); ++p) {
    T chosen = 0;
    T rejected = 0;
    if (pairs.is_there(p)) {
      const AnswerOdds<T> odds = pairs.at(p);
      const T slope = factor * odds.slope();
      chosen = -slope * odds.odds_slope(odds.chosen) / pairs.tokens(2 * p);
      rejected = slope * odds.odds_slope(odds.rejected) / pairs.tokens(2 * p + 1);
    }
    dpolicy.set(2 * p, chosen);
    dpolicy.set(2 * p + 1, rejected);
    dnll.set(2 * p, pairs.is_there(p) ? inverse_tokens : T{0});
    dnll.set(2 * p + 1, T{0});
  }
}

}  // namespace

SNUG_REFERENCE_KIND(Orpo);
SNUG_REFERENCE_KIND(OrpoGrad);

}  // namespace snug::backends::reference
