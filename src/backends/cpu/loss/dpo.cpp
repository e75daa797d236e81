// A micro-batch has few pairs, so one thread does them one after another, in fp64, since the loss
// of a pair is a small difference of large sums.
#include <algorithm>
#include <array>

#include "backends/cpu/kind_functions.h"
#include "backends/cpu/rows.h"
#include "backends/formulas/preference_loss.h"
#include "program/kinds/loss/dpo.h"

namespace snug::backends::cpu {
namespace {

using program::Dpo;
using program::DpoGrad;

// Calls f(pair number, its log-probabilities) for every pair in the batch.
template <typename Struct, typename F>
void for_each_pair(const Struct& dpo, const Invocation& invocation, F&& f) {
  const auto* policy = invocation[Struct::kPolicy].template as<const float>();
  const auto* reference =
      dpo.reference ? invocation[Struct::kReference].template as<const float>() : nullptr;
  const int32_t* bounds = integers_of(invocation[Struct::kBounds]);
  const int32_t* answers = dpo.means ? integers_of(invocation[Struct::kAnswers]) : nullptr;
  const auto tokens = [&](int64_t segment) {
    if (answers == nullptr) return 1.0;
    return static_cast<double>(std::max(1, answers[2 * segment + 1] - answers[2 * segment] - 1));
  };
  const auto compared_with = [&](int64_t segment) {
    return reference == nullptr ? 0.0 : static_cast<double>(reference[segment]);
  };
  const int64_t pairs = invocation[Struct::kPolicy].elements() / 2;
  for (int64_t p = 0; p < pairs; ++p)
    if (bounds[4 * p] < bounds[4 * p + 1])
      f(p, AnswerPair<double>{policy[2 * p], policy[2 * p + 1], compared_with(2 * p),
                              compared_with(2 * p + 1), tokens(2 * p), tokens(2 * p + 1)});
}

template <typename Struct>
PairLoss<double> loss_of(const Struct& dpo, const AnswerPair<double>& pair) {
  return pair_loss<double>({dpo.form, dpo.beta, dpo.label_smoothing, dpo.target_margin},
                           pair.chosen_score(), pair.rejected_score());
}

void run(const Dpo& dpo, const Invocation& invocation, CpuContext&) {
  const auto beta = static_cast<double>(dpo.beta);
  std::array<double, program::kPreferenceMeasures.size()> sums{};
  double loss = 0;
  for_each_pair(dpo, invocation, [&](int64_t, const AnswerPair<double>& answers) {
    const AnswerPair<double> pair = dpo.reference ? answers : answers.compared();
    const double margin = pair.margin(beta);
    loss += loss_of(dpo, answers).value;
    const std::array<double, program::kPreferenceMeasures.size()> measures{
        pair.chosen_reward(beta),
        pair.rejected_reward(beta),
        margin > 0 ? 1.0 : 0.0,
        margin,
        pair.chosen,
        pair.rejected};
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += measures[i];
  });
  const auto inverse_pairs = static_cast<double>(*invocation[Dpo::kInversePairs].as<const float>());
  auto* measured = invocation[Dpo::kMeasures].as<float>();
  for (size_t i = 0; i < sums.size(); ++i)
    measured[i] = static_cast<float>(sums[i] * inverse_pairs);
  *invocation[Dpo::kLoss].as<float>() = static_cast<float>(loss * inverse_pairs);
}

void run(const DpoGrad& grad, const Invocation& invocation, CpuContext&) {
  const auto inverse_pairs =
      static_cast<double>(*invocation[DpoGrad::kInversePairs].as<const float>());
  const Buffer& written = invocation[DpoGrad::kDPolicy];
  auto* dpolicy = written.as<float>();
  std::fill_n(dpolicy, written.elements(), 0.0F);
  for_each_pair(grad, invocation, [&](int64_t p, const AnswerPair<double>& pair) {
    const PairLoss<double> loss = loss_of(grad, pair);
    dpolicy[2 * p] = static_cast<float>(loss.chosen_slope / pair.chosen_tokens * inverse_pairs);
    dpolicy[2 * p + 1] =
        static_cast<float>(loss.rejected_slope / pair.rejected_tokens * inverse_pairs);
  });
}

}  // namespace

SNUG_CPU_KIND(Dpo);
SNUG_CPU_KIND(DpoGrad);

}  // namespace snug::backends::cpu
