// Simple Preference Optimization (Meng et al. 2024, equation 6): the loss of pairs without a
// reference model, of the means of the answers' log-probabilities, with a margin that it asks for:
//
//   before   %losses, %loss = linear_cross_entropy(%hidden, %head, %targets, %inverse_tokens)
//   after    %losses, %token_loss = linear_cross_entropy(%hidden, %head, %targets, %inverse_tokens)
//            %policy.log_probabilities = sum_segments(%losses, %query_bounds) {scale -1}
//            %measures, %loss = dpo(%policy.log_probabilities, %query_bounds, %inverse_pairs,
//                                   %answer_bounds) {beta, means, reference false, target_margin}
//
// The host sets inverse_tokens to 1, so that the losses of tokens are not scaled, and inverse_pairs
// to 1 / (pairs of the step).
#include "methods/loss_builder.h"
#include "methods/objective.h"
#include "program/ir/tensor_names.h"
#include "program/kinds/loss/dpo.h"

namespace snug::methods {
namespace {

using program::Program;
using program::TensorId;

Program finish_simpo(const Program& forward, const ObjectiveOptions& options) {
  LossBuilder builder(forward);
  const TensorId policy = builder.sums("policy.log_probabilities", builder.bounds(), -1.0F);
  const TensorId inverse_pairs = builder.number(program::kInversePairsName);
  const TensorId answers = builder.integers(program::kAnswerBoundsName, {builder.segments()[0], 2});
  const TensorId measures = builder.measures(program::kPreferenceMeasureCount);
  builder.emit(program::Dpo{.beta = static_cast<float>(options.beta),
                            .label_smoothing = static_cast<float>(options.label_smoothing),
                            .means = true,
                            .reference = false,
                            .target_margin = static_cast<float>(options.simpo_gamma)},
               {policy, builder.bounds(), inverse_pairs, answers}, {measures, builder.loss()});
  return builder.take();
}

constexpr StepInput kMeansOfPairs[] = {{program::kInverseTokensName, one},
                                       {program::kInversePairsName, inverse_groups}};

}  // namespace

const Objective kSimpo{.kind = ObjectiveKind::simpo,
                       .group = 2,
                       .data = formats::DataFormat::preference,
                       .measures = program::kPreferenceMeasures,
                       .inputs = kMeansOfPairs,
                       .finish = finish_simpo,
                       .has_margin = true};

}  // namespace snug::methods
