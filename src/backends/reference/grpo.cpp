#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "backends/formulas/clipped_ratio.h"
#include "backends/reference/elements.h"
#include "backends/reference/kinds.h"
#include "program/kinds/loss/grpo.h"

namespace snug::backends::reference {
namespace {

using program::Grpo;
using program::GrpoGrad;

// The operands that both kinds read.
template <typename T, typename Struct>
class Answers {
 public:
  explicit Answers(const Struct& grpo, const Invocation& invocation)
      : grpo_(grpo),
        policy_(invocation[Struct::kPolicy]),
        bounds_(invocation[Struct::kBounds]),
        advantages_(invocation[Struct::kAdvantages]),
        weights_(invocation[Struct::kWeights]) {
    if (grpo.old) old_.emplace(invocation[Struct::kOld]);
    if (grpo.reference) reference_.emplace(invocation[Struct::kReference]);
  }

  ClippedRatio<T> ratio() const {
    return {T{1} - static_cast<T>(grpo_.epsilon), T{1} + static_cast<T>(grpo_.epsilon_high),
            static_cast<T>(grpo_.delta)};
  }
  int64_t segments() const { return advantages_.count(); }
  T advantage(int64_t segment) const { return advantages_[segment]; }
  T weight(int64_t token) const { return weights_[token]; }
  T difference(int64_t token) const { return (*reference_)[token] - policy_[token]; }

  // Calls f(token) for each learned token of the segment.
  template <typename F>
  void for_each_token(int64_t segment, F&& f) const {
    for (int64_t t = bounds_[2 * segment]; t < bounds_[2 * segment + 1]; ++t)
      if (weights_[t] != T{0}) f(t);
  }
  // At least 1.
  T count(int64_t segment) const {
    T count = 0;
    for_each_token(segment, [&](int64_t) { count += 1; });
    return std::max(count, T{1});
  }
  T total_weight(int64_t segment) const {
    T sum = 0;
    for_each_token(segment, [&](int64_t t) { sum += weights_[t]; });
    return sum;
  }
  // Of kl, before the ratio that it may be multiplied by.
  T weighted_divergence(int64_t segment) const {
    T sum = 0;
    for_each_token(segment,
                   [&](int64_t t) { sum += weights_[t] * token_divergence(difference(t)); });
    return sum;
  }
  // What kl is multiplied by.
  T correction(T log_ratio) const { return grpo_.corrected ? std::exp(log_ratio) : T{1}; }
  T log_ratio_of_token(int64_t token) const {
    return old_ ? policy_[token] - (*old_)[token] : T{0};
  }
  T log_ratio_of_segment(int64_t segment) const {
    T sum = 0;
    for_each_token(segment, [&](int64_t t) { sum += log_ratio_of_token(t); });
    return sum / count(segment);
  }

 private:
  const Struct& grpo_;
  Floats<T> policy_;
  Integers bounds_;
  Floats<T> advantages_;
  Floats<T> weights_;
  std::optional<Floats<T>> old_;
  std::optional<Floats<T>> reference_;
};

// What a segment adds to the loss, the shares that are clipped and the divergence, before the
// factors of the measures.
template <typename T>
std::array<T, program::kRewardedTermCount> terms_of(const Grpo& grpo,
                                                    const Answers<T, Grpo>& answers, int64_t s) {
  const ClippedRatio<T> ratio = answers.ratio();
  const T advantage = answers.advantage(s);
  const T of_segment = answers.log_ratio_of_segment(s);
  std::array<T, program::kRewardedTermCount> terms{};
  answers.for_each_token(s, [&](int64_t t) {
    const T log_ratio = grpo.sequence ? of_segment : answers.log_ratio_of_token(t);
    T loss = -ratio.gain(log_ratio, advantage);
    if (grpo.reference) {
      const T divergence = answers.correction(log_ratio) * token_divergence(answers.difference(t));
      loss += static_cast<T>(grpo.beta) * divergence;
      terms[3] += divergence;
    }
    terms[0] += answers.weight(t) * loss;
    terms[1] += ratio.is_low(log_ratio, advantage) ? T{1} : T{0};
    terms[2] += ratio.is_high(log_ratio, advantage) ? T{1} : T{0};
  });
  if (grpo.sequence)  // each segment counts once
    for (const size_t clipped : {1U, 2U}) terms[clipped] /= answers.count(s);
  return terms;
}

template <typename T>
void run(const Grpo& grpo, const Invocation& invocation) {
  const Answers<T, Grpo> answers(grpo, invocation);
  const T inverse_tokens = Floats<T>(invocation[Grpo::kInverseTokens])[0];
  const T inverse_sequences = Floats<T>(invocation[Grpo::kInverseSequences])[0];
  const T inverse_clipped = grpo.sequence ? inverse_sequences : inverse_tokens;
  const std::array<T, program::kRewardedTermCount> factors{T{1}, inverse_clipped, inverse_clipped,
                                                           inverse_tokens};
  const Floats<T> written(invocation[Grpo::kTerms]);
  std::array<T, program::kRewardedTermCount> sums{};
  for (int64_t s = 0; s < answers.segments(); ++s) {
    const auto terms = terms_of(grpo, answers, s);
    for (size_t i = 0; i < terms.size(); ++i) {
      const T term = terms[i] * factors[i];
      written.set(s, static_cast<int64_t>(i), term);
      sums[i] += term;
    }
  }
  const Floats<T> measured(invocation[Grpo::kMeasures]);
  measured.set(0, sums[1]);
  measured.set(1, sums[2]);
  measured.set(2, sums[1] + sums[2]);
  measured.set(3, grpo.reference ? sums[3] : std::numeric_limits<T>::quiet_NaN());
  Floats<T>(invocation[Grpo::kLoss]).set(0, sums[0]);
}

template <typename T>
void run(const GrpoGrad& grad, const Invocation& invocation) {
  const Answers<T, GrpoGrad> answers(grad, invocation);
  const ClippedRatio<T> ratio = answers.ratio();
  const Floats<T> dpolicy(invocation[GrpoGrad::kDPolicy]);
  for (int64_t t = 0; t < dpolicy.count(); ++t) dpolicy.set(t, T{0});
  const auto beta = static_cast<T>(grad.beta);
  for (int64_t s = 0; s < answers.segments(); ++s) {
    const T advantage = answers.advantage(s);
    const T log_ratio_of_segment = answers.log_ratio_of_segment(s);
    // What a ratio of the segment multiplies counts for all of its tokens, and each of these moves
    // the ratio by its share.
    T of_segment = -ratio.slope(log_ratio_of_segment, advantage) * answers.total_weight(s);
    if (grad.reference && grad.corrected)
      of_segment += beta * std::exp(log_ratio_of_segment) * answers.weighted_divergence(s);
    of_segment /= answers.count(s);
    answers.for_each_token(s, [&](int64_t t) {
      const T log_ratio = grad.sequence ? log_ratio_of_segment : answers.log_ratio_of_token(t);
      const T weight = answers.weight(t);
      T slope = grad.sequence ? of_segment : -weight * ratio.slope(log_ratio, advantage);
      if (grad.reference) {
        const T difference = answers.difference(t);
        T pull = token_divergence_slope(difference);
        if (grad.corrected && !grad.sequence) pull += token_divergence(difference);
        slope += weight * beta * answers.correction(log_ratio) * pull;
      }
      dpolicy.set(t, slope);
    });
  }
}

}  // namespace

SNUG_REFERENCE_KIND(Grpo);
SNUG_REFERENCE_KIND(GrpoGrad);

}  // namespace snug::backends::reference
