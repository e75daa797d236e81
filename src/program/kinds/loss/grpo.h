// grpo: the loss of answers that were generated and rewarded (Shao et al. 2024, DeepSeekMath,
// equation 3; clipping as in DAPO, Yu et al. 2025; the ratio of sequences as in GSPO, Zheng et al.
// 2025). Segment s is a prompt with one answer, whose advantage is how much better than the other
// answers to the same prompt it was rewarded. A token is learned where its weight is not 0. With
//
//   log_ratio(t) = policy[t] - old[t], or with `sequence` its mean over the segment's learned
//                  tokens, which is the same for all of them; 0 without `old`, but not constant
//   ratio(t)     = exp(log_ratio(t))
//   gain(t)      = min(min(ratio(t), delta) advantages[s],
//                      clip(ratio(t), 1 - epsilon, 1 + epsilon_high) advantages[s])
//   kl(t)        = exp(reference[t] - policy[t]) - (reference[t] - policy[t]) - 1, with `corrected`
//                  times ratio(t), by which its gradient is that of the divergence (DeepSeek-V3.2)
//
// the loss is the sum over tokens of token_weights[t] * (beta kl(t) - gain(t)). Without `reference`
// there is no kl; a delta of 0 is none. Weights say what a token counts in the whole step (one over
// the step's answers and over the tokens of its answer, or one over all tokens, ...), so that
// losses and gradients of micro-batches just add up.
#pragma once

#include <array>
#include <cstdint>

#include "program/kinds/field.h"
#include "program/kinds/operands.h"
#include "program/kinds/traits.h"

namespace snug::program {

// What is measured of answers, in this order: the share of what is clipped at the lower bound (and
// has a negative advantage), at the upper bound (and has a positive one), and at either; and the
// mean of kl, no number without a reference. They are sums over learned tokens times
// inverse_tokens. With `sequence` the shares are sums over segments times inverse_sequences.
inline constexpr std::array<std::string_view, 4> kRewardedMeasures{
    "clip_ratio/low_mean", "clip_ratio/high_mean", "clip_ratio/region_mean", "kl"};
inline constexpr auto kRewardedMeasureCount = static_cast<int64_t>(kRewardedMeasures.size());
// What each segment adds: to the loss, to the shares that are clipped low and high, and to kl.
inline constexpr int64_t kRewardedTermCount = 4;

// reads: policy (tokens), log-probabilities; bounds (segments, 2) i32, [begin, end) of segments
// that do not overlap; advantages (segments); token_weights (tokens); inverse_tokens,
// inverse_sequences (1); old (tokens) if `old`, the log-probabilities that the answers were made
// with; reference (tokens) if `reference`. writes: terms (segments, 4); measures (4):
// kRewardedMeasures; loss (1).
struct Grpo {
  float epsilon = 0.2F;
  float epsilon_high = 0.2F;
  float delta = 0.0F;
  float beta = 0.0F;
  bool sequence = false;
  bool old = false;
  bool reference = false;
  bool corrected = false;
  bool operator==(const Grpo&) const = default;
  static constexpr auto kFields =
      std::tuple{Field{"epsilon", &Grpo::epsilon},     Field{"epsilon_high", &Grpo::epsilon_high},
                 Field{"delta", &Grpo::delta},         Field{"beta", &Grpo::beta},
                 Field{"sequence", &Grpo::sequence},   Field{"old", &Grpo::old},
                 Field{"reference", &Grpo::reference}, Field{"corrected", &Grpo::corrected}};
  static constexpr auto kPolicy = read<Grpo>(0, "policy");
  static constexpr auto kBounds = read<Grpo>(1, "bounds");
  static constexpr auto kAdvantages = read<Grpo>(2, "advantages");
  static constexpr auto kWeights = read<Grpo>(3, "token_weights");
  static constexpr auto kInverseTokens = read<Grpo>(4, "inverse_tokens");
  static constexpr auto kInverseSequences = read<Grpo>(5, "inverse_sequences");
  static constexpr auto kOld = read<Grpo>(6, "old", &Grpo::old);
  static constexpr auto kReference = read<Grpo>(7, "reference", &Grpo::reference);
  static constexpr auto kTerms = write<Grpo>(8, "terms");
  static constexpr auto kMeasures = write<Grpo>(9, "measures");
  static constexpr auto kLoss = write<Grpo>(10, "loss");
  static constexpr std::array kOperands{kPolicy,        kBounds,           kAdvantages, kWeights,
                                        kInverseTokens, kInverseSequences, kOld,        kReference,
                                        kTerms,         kMeasures,         kLoss};
  static constexpr Traits kTraits{
      .loss_factors = {kWeights.name, kInverseTokens.name, kInverseSequences.name}};
};

// reads as Grpo, without what is for the measures. writes: dpolicy (tokens), the derivative of
// `loss`; 0 for tokens that are not learned.
struct GrpoGrad {
  float epsilon = 0.2F;
  float epsilon_high = 0.2F;
  float delta = 0.0F;
  float beta = 0.0F;
  bool sequence = false;
  bool old = false;
  bool reference = false;
  bool corrected = false;
  bool operator==(const GrpoGrad&) const = default;
  static constexpr auto kFields = std::tuple{
      Field{"epsilon", &GrpoGrad::epsilon},     Field{"epsilon_high", &GrpoGrad::epsilon_high},
      Field{"delta", &GrpoGrad::delta},         Field{"beta", &GrpoGrad::beta},
      Field{"sequence", &GrpoGrad::sequence},   Field{"old", &GrpoGrad::old},
      Field{"reference", &GrpoGrad::reference}, Field{"corrected", &GrpoGrad::corrected}};
  static constexpr auto kPolicy = read<GrpoGrad>(0, "policy");
  static constexpr auto kBounds = read<GrpoGrad>(1, "bounds");
  static constexpr auto kAdvantages = read<GrpoGrad>(2, "advantages");
  static constexpr auto kWeights = read<GrpoGrad>(3, "token_weights");
  static constexpr auto kOld = read<GrpoGrad>(4, "old", &GrpoGrad::old);
  static constexpr auto kReference = read<GrpoGrad>(5, "reference", &GrpoGrad::reference);
  static constexpr auto kDPolicy = write<GrpoGrad>(6, "dpolicy");
  static constexpr std::array kOperands{kPolicy, kBounds,    kAdvantages, kWeights,
                                        kOld,    kReference, kDPolicy};
};

}  // namespace snug::program
