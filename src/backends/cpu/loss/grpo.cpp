// A segment is a task, summed in fp64 and in token order, so that what it adds does not depend on
// the other segments in its row; the sums over segments are made in order by one thread.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "backends/cpu/kernels.h"
#include "backends/cpu/kind_functions.h"
#include "backends/cpu/rows.h"
#include "backends/formulas/clipped_ratio.h"
#include "program/kinds/loss/grpo.h"

namespace snug::backends::cpu {
namespace {

using program::Grpo;
using program::GrpoGrad;

constexpr auto kAnswerTerms = static_cast<size_t>(program::kRewardedTermCount);

// The operands that both kinds read; null where there is none.
struct AnswerTokens {
  const float* policy;
  const float* old;
  const float* reference;
  const float* weights;
  const float* advantages;
  const int32_t* bounds;
  int64_t segments;
  ClippedRatio<double> ratio;
  double beta;
  bool corrected;

  double log_ratio(int64_t t) const {
    return old == nullptr ? 0.0 : static_cast<double>(policy[t]) - static_cast<double>(old[t]);
  }
  double difference(int64_t t) const {
    return static_cast<double>(reference[t]) - static_cast<double>(policy[t]);
  }
  // What kl is multiplied by.
  double correction(double log_ratio) const { return corrected ? std::exp(log_ratio) : 1.0; }
  // Calls f(token) for each learned token of the segment.
  template <typename F>
  void for_each_token(int64_t s, F&& f) const {
    for (int64_t t = bounds[2 * s]; t < bounds[2 * s + 1]; ++t)
      if (weights[t] != 0.0F) f(t);
  }
};

template <typename Struct>
AnswerTokens answers_in(const Struct& grpo, const Invocation& invocation) {
  const auto floats = [&](const auto& operand) {
    return invocation[operand].template as<const float>();
  };
  return {.policy = floats(Struct::kPolicy),
          .old = grpo.old ? floats(Struct::kOld) : nullptr,
          .reference = grpo.reference ? floats(Struct::kReference) : nullptr,
          .weights = floats(Struct::kWeights),
          .advantages = floats(Struct::kAdvantages),
          .bounds = integers_of(invocation[Struct::kBounds]),
          .segments = invocation[Struct::kAdvantages].elements(),
          .ratio = {1.0 - static_cast<double>(grpo.epsilon),
                    1.0 + static_cast<double>(grpo.epsilon_high), static_cast<double>(grpo.delta)},
          .beta = static_cast<double>(grpo.beta),
          .corrected = grpo.corrected};
}

// The mean of a segment's log-ratios, how many tokens it is made of (at least 1), and the sums of
// their weights and of their weighted divergences, before these are multiplied by the ratio.
struct SegmentRatio {
  double log_ratio = 0;
  double count = 0;
  double weight = 0;
  double divergence = 0;
};

SegmentRatio segment_ratio(const AnswerTokens& answers, int64_t s) {
  SegmentRatio result;
  answers.for_each_token(s, [&](int64_t t) {
    result.log_ratio += answers.log_ratio(t);
    result.count += 1;
    const double weight = answers.weights[t];
    result.weight += weight;
    if (answers.reference != nullptr)
      result.divergence += weight * token_divergence(answers.difference(t));
  });
  result.count = std::max(result.count, 1.0);
  result.log_ratio /= result.count;
  return result;
}

std::array<double, kAnswerTerms> terms_of(const Grpo& grpo, const AnswerTokens& answers,
                                          int64_t s) {
  const double advantage = answers.advantages[s];
  const SegmentRatio whole = grpo.sequence ? segment_ratio(answers, s) : SegmentRatio{};
  const double share = grpo.sequence ? 1.0 / whole.count : 1.0;
  std::array<double, kAnswerTerms> terms{};
  answers.for_each_token(s, [&](int64_t t) {
    const double log_ratio = grpo.sequence ? whole.log_ratio : answers.log_ratio(t);
    double loss = -answers.ratio.gain(log_ratio, advantage);
    if (grpo.reference) {
      const double divergence =
          answers.correction(log_ratio) * token_divergence(answers.difference(t));
      loss += answers.beta * divergence;
      terms[3] += divergence;
    }
    terms[0] += static_cast<double>(answers.weights[t]) * loss;
    terms[1] += answers.ratio.is_low(log_ratio, advantage) ? share : 0.0;
    terms[2] += answers.ratio.is_high(log_ratio, advantage) ? share : 0.0;
  });
  return terms;
}

void run(const Grpo& grpo, const Invocation& invocation, CpuContext&) {
  const AnswerTokens answers = answers_in(grpo, invocation);
  const double inverse_tokens = *invocation[Grpo::kInverseTokens].as<const float>();
  const double inverse_clipped =
      grpo.sequence ? *invocation[Grpo::kInverseSequences].as<const float>() : inverse_tokens;
  const std::array<double, kAnswerTerms> factors{1.0, inverse_clipped, inverse_clipped,
                                                 inverse_tokens};
  auto* written = invocation[Grpo::kTerms].as<float>();
  parallel_ranges(answers.segments, 1, [&](int64_t s, int64_t) {
    const std::array<double, kAnswerTerms> terms = terms_of(grpo, answers, s);
    for (size_t i = 0; i < kAnswerTerms; ++i)
      written[static_cast<size_t>(s) * kAnswerTerms + i] =
          static_cast<float>(terms[i] * factors[i]);
  });
  std::array<double, kAnswerTerms> sums{};
  for (size_t i = 0; i < static_cast<size_t>(answers.segments) * kAnswerTerms; ++i)
    sums[i % kAnswerTerms] += static_cast<double>(written[i]);
  auto* measured = invocation[Grpo::kMeasures].as<float>();
  measured[0] = static_cast<float>(sums[1]);
  measured[1] = static_cast<float>(sums[2]);
  measured[2] = static_cast<float>(sums[1] + sums[2]);
  measured[3] =
      grpo.reference ? static_cast<float>(sums[3]) : std::numeric_limits<float>::quiet_NaN();
  *invocation[Grpo::kLoss].as<float>() = static_cast<float>(sums[0]);
}

void run(const GrpoGrad& grad, const Invocation& invocation, CpuContext&) {
  const AnswerTokens answers = answers_in(grad, invocation);
  const Buffer& of_policy = invocation[GrpoGrad::kDPolicy];
  auto* dpolicy = of_policy.as<float>();
  std::fill_n(dpolicy, of_policy.elements(), 0.0F);
  parallel_ranges(answers.segments, 1, [&](int64_t s, int64_t) {
    const double advantage = answers.advantages[s];
    const SegmentRatio whole = grad.sequence ? segment_ratio(answers, s) : SegmentRatio{};
    // What a ratio of the segment multiplies counts for all of its tokens, and each of these moves
    // the ratio by its share.
    double of_segment = -answers.ratio.slope(whole.log_ratio, advantage) * whole.weight;
    if (answers.corrected)
      of_segment += answers.beta * std::exp(whole.log_ratio) * whole.divergence;
    answers.for_each_token(s, [&](int64_t t) {
      const double log_ratio = grad.sequence ? whole.log_ratio : answers.log_ratio(t);
      const double weight = answers.weights[t];
      double slope = grad.sequence ? of_segment / whole.count
                                   : -weight * answers.ratio.slope(log_ratio, advantage);
      if (grad.reference) {
        const double difference = answers.difference(t);
        double pull = token_divergence_slope(difference);
        if (grad.corrected && !grad.sequence) pull += token_divergence(difference);
        slope += weight * answers.beta * answers.correction(log_ratio) * pull;
      }
      dpolicy[t] = static_cast<float>(slope);
    });
  });
}

}  // namespace

SNUG_CPU_KIND(Grpo);
SNUG_CPU_KIND(GrpoGrad);

}  // namespace snug::backends::cpu
