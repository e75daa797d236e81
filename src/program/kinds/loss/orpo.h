// orpo: the loss of Odds Ratio Preference Optimization (Hong et al. 2024, equation 6) over pairs of
// answers, from the log-probabilities of whole sequences, without a reference. Segments 2p and
// 2p + 1 are pair p, what was chosen before what was rejected; a pair whose first segment is empty
// is none. Bounds are those of the answers: [begin, end) of the tokens whose losses are an
// answer's, the last of which has nothing to predict. With an answer's mean of log-probabilities
//
//   mean(s) = policy[s] / (end - begin - 1),    log_odds(s) = mean - log(1 - exp(mean))
//   ratio(p) = log sigmoid(log_odds(2p) - log_odds(2p + 1))
//
// the loss is the sum over pairs of nll[2p] times inverse_chosen_tokens, less beta times that of
// ratio times inverse_pairs. Both inverses are of the whole step, so that losses and gradients of
// micro-batches just add up. A mean above -2^-24, which f32 cannot tell from certainty, counts as
// that, so that the odds are finite.
#pragma once

#include <array>
#include <cstdint>

#include "program/kinds/field.h"
#include "program/kinds/operands.h"
#include "program/kinds/traits.h"

namespace snug::program {

// What is measured of pairs, each the sum over pairs times inverse_pairs (of nll_loss
// inverse_chosen_tokens), in this order. Rewards are beta times the mean of log-probabilities,
// which `logps` are; log_odds_ratio is `ratio`, log_odds_chosen what it is the log sigmoid of.
inline constexpr std::array<std::string_view, 9> kOddsMeasures{
    "rewards/chosen", "rewards/rejected", "rewards/accuracies", "rewards/margins", "logps/chosen",
    "logps/rejected", "nll_loss",         "log_odds_ratio",     "log_odds_chosen"};
inline constexpr auto kOddsMeasureCount = static_cast<int64_t>(kOddsMeasures.size());

// reads: policy (segments): log-probabilities of the answers; nll (segments): the sum of the losses
// of a whole sequence, of which that of what was rejected counts for nothing; bounds (segments, 2)
// i32, of the answers; inverse_pairs (1); inverse_chosen_tokens (1). writes: measures (9):
// kOddsMeasures; loss (1).
struct Orpo {
  float beta = 0.1F;
  bool operator==(const Orpo&) const = default;
  static constexpr auto kFields = std::tuple{Field{"beta", &Orpo::beta}};
  static constexpr auto kPolicy = read<Orpo>(0, "policy");
  static constexpr auto kNll = read<Orpo>(1, "nll");
  static constexpr auto kBounds = read<Orpo>(2, "bounds");
  static constexpr auto kInversePairs = read<Orpo>(3, "inverse_pairs");
  static constexpr auto kInverseTokens = read<Orpo>(4, "inverse_chosen_tokens");
  static constexpr auto kMeasures = write<Orpo>(5, "measures");
  static constexpr auto kLoss = write<Orpo>(6, "loss");
  static constexpr std::array kOperands{kPolicy,        kNll,      kBounds, kInversePairs,
                                        kInverseTokens, kMeasures, kLoss};
  static constexpr Traits kTraits{.loss_factors = {kInversePairs.name, kInverseTokens.name}};
};

// reads as Orpo, without nll, in which the loss is linear. writes: dpolicy and dnll (segments), the
// derivatives of `loss`; 0 where there is no pair.
struct OrpoGrad {
  float beta = 0.1F;
  bool operator==(const OrpoGrad&) const = default;
  static constexpr auto kFields = std::tuple{Field{"beta", &OrpoGrad::beta}};
  static constexpr auto kPolicy = read<OrpoGrad>(0, "policy");
  static constexpr auto kBounds = read<OrpoGrad>(1, "bounds");
  static constexpr auto kInversePairs = read<OrpoGrad>(2, "inverse_pairs");
  static constexpr auto kInverseTokens = read<OrpoGrad>(3, "inverse_chosen_tokens");
  static constexpr auto kDPolicy = write<OrpoGrad>(4, "dpolicy");
  static constexpr auto kDNll = write<OrpoGrad>(5, "dnll");
  static constexpr std::array kOperands{kPolicy,        kBounds,  kInversePairs,
                                        kInverseTokens, kDPolicy, kDNll};
};

}  // namespace snug::program
