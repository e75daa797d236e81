// dpo: the loss of Direct Preference Optimization (Rafailov et al. 2023, equation 7) and its
// relatives over pairs of answers, from the log-probabilities of whole sequences. Segments 2p and
// 2p + 1 are pair p, what was chosen before what was rejected; a pair whose first segment is empty
// is none. With
//
//   reward(s) = beta * (policy[s] - reference[s]),   margin(p) = reward(2p) - reward(2p + 1)
//
// the loss is the sum over pairs of -log sigmoid(margin - target_margin), or of what another form
// makes of the two rewards (backends/formulas/preference_loss.h), times inverse_pairs, which is one
// over the pairs of the whole step, so that losses and gradients of micro-batches just add up.
#pragma once

#include <array>
#include <cstdint>

#include "base/preference_loss.h"
#include "program/kinds/field.h"
#include "program/kinds/operands.h"
#include "program/kinds/traits.h"

namespace snug::program {

// What is measured of pairs, each the sum over pairs times inverse_pairs, in this order.
inline constexpr std::array<std::string_view, 6> kPreferenceMeasures{
    "rewards/chosen",  "rewards/rejected", "rewards/accuracies",
    "rewards/margins", "logps/chosen",     "logps/rejected"};
inline constexpr auto kPreferenceMeasureCount = static_cast<int64_t>(kPreferenceMeasures.size());

// reads: policy and, with `reference`, reference (segments): log-probabilities; bounds (segments,
// 2) i32; inverse_pairs (1); with `means` answers (segments, 2) i32, the bounds of the answers as
// orpo has them. writes: measures (6): kPreferenceMeasures, of which accuracies counts the pairs
// with a margin above 0; loss (1). Without `reference` all log-probabilities of a reference model
// are 0, and what is measured is what is compared: of means, the means.
struct Dpo {
  float beta = 0.1F;
  base::PreferenceLoss form = base::PreferenceLoss::sigmoid;
  float label_smoothing = 0.0F;
  bool means = false;  // what is compared is divided by the tokens of each answer
  bool reference = true;
  float target_margin = 0.0F;  // what is taken from the margin before a loss is made of it
  bool operator==(const Dpo&) const = default;
  static constexpr auto kFields = std::tuple{Field{"beta", &Dpo::beta},
                                             Field{"form", &Dpo::form},
                                             Field{"label_smoothing", &Dpo::label_smoothing},
                                             Field{"means", &Dpo::means},
                                             Field{"reference", &Dpo::reference},
                                             Field{"target_margin", &Dpo::target_margin}};
  static constexpr auto kPolicy = read<Dpo>(0, "policy");
  static constexpr auto kReference = read<Dpo>(1, "reference", &Dpo::reference);
  static constexpr auto kBounds = read<Dpo>(2, "bounds");
  static constexpr auto kInversePairs = read<Dpo>(3, "inverse_pairs");
  static constexpr auto kAnswers = read<Dpo>(4, "answers", &Dpo::means);
  static constexpr auto kMeasures = write<Dpo>(5, "measures");
  static constexpr auto kLoss = write<Dpo>(6, "loss");
  static constexpr std::array kOperands{kPolicy,  kReference, kBounds, kInversePairs,
                                        kAnswers, kMeasures,  kLoss};
  static constexpr Traits kTraits{.loss_factors = {kInversePairs.name}};
};

// reads as Dpo. writes: dpolicy (segments), the derivative of `loss`: of sigmoid -beta
// sigmoid(-margin) inverse_pairs for what was chosen, its opposite for what was rejected; 0 where
// there is no pair.
struct DpoGrad {
  float beta = 0.1F;
  base::PreferenceLoss form = base::PreferenceLoss::sigmoid;
  float label_smoothing = 0.0F;
  bool means = false;
  bool reference = true;
  float target_margin = 0.0F;
  bool operator==(const DpoGrad&) const = default;
  static constexpr auto kFields = std::tuple{Field{"beta", &DpoGrad::beta},
                                             Field{"form", &DpoGrad::form},
                                             Field{"label_smoothing", &DpoGrad::label_smoothing},
                                             Field{"means", &DpoGrad::means},
                                             Field{"reference", &DpoGrad::reference},
                                             Field{"target_margin", &DpoGrad::target_margin}};
  static constexpr auto kPolicy = read<DpoGrad>(0, "policy");
  static constexpr auto kReference = read<DpoGrad>(1, "reference", &DpoGrad::reference);
  static constexpr auto kBounds = read<DpoGrad>(2, "bounds");
  static constexpr auto kInversePairs = read<DpoGrad>(3, "inverse_pairs");
  static constexpr auto kAnswers = read<DpoGrad>(4, "answers", &DpoGrad::means);
  static constexpr auto kDPolicy = write<DpoGrad>(5, "dpolicy");
  static constexpr std::array kOperands{kPolicy,       kReference, kBounds,
                                        kInversePairs, kAnswers,   kDPolicy};
};

}  // namespace snug::program
