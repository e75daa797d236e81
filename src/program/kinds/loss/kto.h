// kto: the loss of Kahneman-Tversky Optimization (Ethayarajh et al. 2024, section 4) over examples
// of one answer each, which is desirable or undesirable, from the log-probabilities of whole
// sequences. Segments 2e and 2e + 1 are example e: its prompt with its answer, and the same prompt
// with the answer of another example, of which the divergence from the reference is estimated.
// labels[e] is 1 where the answer is desirable, -1 where it is undesirable, 0 where there is no
// example. With
//
//   ratio(s) = policy[s] - reference[s],   kl = max(0, mean over e of ratio(2e + 1))
//   gain(e)  = labels[e] * beta * (ratio(2e) - kl)
//
// the loss is the sum over examples of weight(label) * (1 - sigmoid(gain)) times inverse_pairs,
// which is one over the examples of the whole step, so that losses and gradients of micro-batches
// just add up. kl is a constant to the gradient, and the mean that it is made of goes over the
// examples of a micro-batch, of all ranks: kl_estimate gives the sums that it is made of.
#pragma once

#include <array>
#include <cstdint>

#include "program/kinds/field.h"
#include "program/kinds/operands.h"
#include "program/kinds/traits.h"

namespace snug::program {

// What is measured of examples, in this order. Those of desirable answers (chosen) and of
// undesirable ones (rejected) are means over theirs: sums times inverse_desirable or
// inverse_undesirable, which are of the whole step, and no numbers in a step that has none. Rewards
// are beta * ratio(2e), margins the difference of their means, logps policy[2e]; kl is its mean
// over the examples.
inline constexpr std::array<std::string_view, 6> kLabelMeasures{
    "rewards/chosen", "rewards/rejected", "rewards/margins",
    "logps/chosen",   "logps/rejected",   "kl"};
inline constexpr auto kLabelMeasureCount = static_cast<int64_t>(kLabelMeasures.size());

// reads: policy, reference (segments): log-probabilities; labels (segments / 2) i32. writes: sums
// (2): the sum over examples of ratio(2e + 1), and how many examples there are, which several ranks
// add up. Nothing has a gradient through it.
struct KlEstimate {
  bool operator==(const KlEstimate&) const = default;
  static constexpr std::tuple<> kFields{};
  static constexpr auto kPolicy = read<KlEstimate>(0, "policy");
  static constexpr auto kReference = read<KlEstimate>(1, "reference");
  static constexpr auto kLabels = read<KlEstimate>(2, "labels");
  static constexpr auto kSums = write<KlEstimate>(3, "sums");
  static constexpr std::array kOperands{kPolicy, kReference, kLabels, kSums};
  static constexpr Traits kTraits{.sums_over_ranks = kSums.name};
};

// reads: policy, reference (segments); labels (segments / 2) i32; kl_sums (2), of kl_estimate;
// inverse_pairs (1); inverse_desirable, inverse_undesirable (1). writes: measures (6):
// kLabelMeasures; loss (1).
struct Kto {
  float beta = 0.1F;
  float desirable_weight = 1.0F;
  float undesirable_weight = 1.0F;
  bool operator==(const Kto&) const = default;
  static constexpr auto kFields =
      std::tuple{Field{"beta", &Kto::beta}, Field{"desirable_weight", &Kto::desirable_weight},
                 Field{"undesirable_weight", &Kto::undesirable_weight}};
  static constexpr auto kPolicy = read<Kto>(0, "policy");
  static constexpr auto kReference = read<Kto>(1, "reference");
  static constexpr auto kLabels = read<Kto>(2, "labels");
  static constexpr auto kKlSums = read<Kto>(3, "kl_sums");
  static constexpr auto kInversePairs = read<Kto>(4, "inverse_pairs");
  static constexpr auto kInverseDesirable = read<Kto>(5, "inverse_desirable");
  static constexpr auto kInverseUndesirable = read<Kto>(6, "inverse_undesirable");
  static constexpr auto kMeasures = write<Kto>(7, "measures");
  static constexpr auto kLoss = write<Kto>(8, "loss");
  static constexpr std::array kOperands{
      kPolicy,           kReference,          kLabels,   kKlSums, kInversePairs,
      kInverseDesirable, kInverseUndesirable, kMeasures, kLoss};
  static constexpr Traits kTraits{
      .loss_factors = {kInversePairs.name, kInverseDesirable.name, kInverseUndesirable.name}};
};

// reads as Kto, without what is for the measures. writes: dpolicy (segments), the derivative of
// `loss`: -labels[e] beta weight sigmoid(gain) sigmoid(-gain) inverse_pairs for 2e; 0 for 2e + 1
// and where there is no example.
struct KtoGrad {
  float beta = 0.1F;
  float desirable_weight = 1.0F;
  float undesirable_weight = 1.0F;
  bool operator==(const KtoGrad&) const = default;
  static constexpr auto kFields = std::tuple{
      Field{"beta", &KtoGrad::beta}, Field{"desirable_weight", &KtoGrad::desirable_weight},
      Field{"undesirable_weight", &KtoGrad::undesirable_weight}};
  static constexpr auto kPolicy = read<KtoGrad>(0, "policy");
  static constexpr auto kReference = read<KtoGrad>(1, "reference");
  static constexpr auto kLabels = read<KtoGrad>(2, "labels");
  static constexpr auto kKlSums = read<KtoGrad>(3, "kl_sums");
  static constexpr auto kInversePairs = read<KtoGrad>(4, "inverse_pairs");
  static constexpr auto kDPolicy = write<KtoGrad>(5, "dpolicy");
  static constexpr std::array kOperands{kPolicy, kReference,    kLabels,
                                        kKlSums, kInversePairs, kDPolicy};
};

}  // namespace snug::program
