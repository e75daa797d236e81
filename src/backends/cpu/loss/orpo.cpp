// A micro-batch has few pairs, so one thread does them one after another, in fp64.
#include <array>

#include "backends/cpu/kind_functions.h"
#include "backends/cpu/rows.h"
#include "backends/formulas/answer_odds.h"
#include "program/kinds/loss/orpo.h"

namespace snug::backends::cpu {
namespace {

using program::Orpo;
using program::OrpoGrad;

using Odds = AnswerOdds<double>;

// Calls f(pair number, its odds, its bounds) for every pair in the batch.
template <typename Struct, typename F>
void for_each_odds(const Struct&, const Invocation& invocation, F&& f) {
  const auto* policy = invocation[Struct::kPolicy].template as<const float>();
  const int32_t* bounds = integers_of(invocation[Struct::kBounds]);
  const int64_t pairs = invocation[Struct::kPolicy].elements() / 2;
  for (int64_t p = 0; p < pairs; ++p)
    if (bounds[4 * p] < bounds[4 * p + 1])
      f(p, answer_odds<double>(policy[2 * p], policy[2 * p + 1], bounds + 4 * p), bounds + 4 * p);
}

double inverse_of(const Buffer& buffer) { return *buffer.as<const float>(); }

void run(const Orpo& orpo, const Invocation& invocation, CpuContext&) {
  const auto beta = static_cast<double>(orpo.beta);
  const double inverse_pairs = inverse_of(invocation[Orpo::kInversePairs]);
  const auto* nll = invocation[Orpo::kNll].as<const float>();
  std::array<double, program::kOddsMeasures.size()> sums{};
  double nll_sum = 0;
  double odds_loss = 0;
  for_each_odds(orpo, invocation, [&](int64_t p, const Odds& odds, const int32_t*) {
    const double log_odds = odds.log_odds();
    nll_sum += nll[2 * p];
    odds_loss += minus_log_sigmoid(log_odds);
    const std::array<double, program::kOddsMeasures.size()> measures{
        beta * odds.chosen,
        beta * odds.rejected,
        odds.chosen > odds.rejected ? 1.0 : 0.0,
        beta * (odds.chosen - odds.rejected),
        odds.chosen,
        odds.rejected,
        0.0,
        -minus_log_sigmoid(log_odds),
        log_odds};
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += measures[i] * inverse_pairs;
  });
  constexpr size_t kNllMeasure = 6;
  sums[kNllMeasure] = nll_sum * inverse_of(invocation[Orpo::kInverseTokens]);
  auto* measured = invocation[Orpo::kMeasures].as<float>();
  for (size_t i = 0; i < sums.size(); ++i) measured[i] = static_cast<float>(sums[i]);
  *invocation[Orpo::kLoss].as<float>() =
      static_cast<float>(sums[kNllMeasure] + beta * odds_loss * inverse_pairs);
}

void run(const OrpoGrad& grad, const Invocation& invocation, CpuContext&) {
  const double factor =
      static_cast<double>(grad.beta) * inverse_of(invocation[OrpoGrad::kInversePairs]);
  const float inverse_tokens = *invocation[OrpoGrad::kInverseTokens].as<const float>();
  const Buffer& written = invocation[OrpoGrad::kDPolicy];
  auto* dpolicy = written.as<float>();
  auto* dnll = invocation[OrpoGrad::kDNll].as<float>();
  std::fill_n(dpolicy, written.elements(), 0.0F);
  std::fill_n(dnll, written.elements(), 0.0F);
  for_each_odds(grad, invocation, [&](int64_t p, const Odds& odds, const int32_t* bounds) {
    const double slope = factor * odds.slope();
    const auto share = [&](double mean, const int32_t* of) {
      return slope * Odds::odds_slope(mean) / std::max(1, of[1] - of[0] - 1);
    };
    dpolicy[2 * p] = static_cast<float>(-share(odds.chosen, bounds));
    dpolicy[2 * p + 1] = static_cast<float>(share(odds.rejected, bounds + 2));
    dnll[2 * p] = inverse_tokens;
  });
}

}  // namespace

SNUG_CPU_KIND(Orpo);
SNUG_CPU_KIND(OrpoGrad);

}  // namespace snug::backends::cpu
