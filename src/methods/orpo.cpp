// Odds Ratio Preference Optimization:
//
//   before   %losses, %loss = linear_cross_entropy(%hidden, %head, %targets, %inverse_tokens)
//   after    %losses, %token_loss = linear_cross_entropy(%hidden, %head, %targets, %inverse_tokens)
//            %answer.log_probabilities = sum_segments(%losses, %answer_bounds) {scale -1}
//            %sequence.losses = sum_segments(%losses, %query_bounds)
//            %measures, %loss = orpo(%answer.log_probabilities, %sequence.losses, %answer_bounds,
//                                    %inverse_pairs, %inverse_chosen_tokens) {beta}
//
// All tokens of a chosen document are targets, its prompt included; answer_bounds says which of
// them belong to the answer. The host sets inverse_tokens to 1, so that the losses of tokens are
// not scaled, inverse_pairs to 1 / (pairs of the step), and inverse_chosen_tokens to 1 / (targets
// of the step's chosen documents).
#include "program/kinds/loss/orpo.h"
#include "methods/loss_builder.h"
#include "methods/objective.h"
#include "program/ir/tensor_names.h"

namespace snug::methods {
namespace {

using program::Program;
using program::TensorId;

Program finish_orpo(const Program& forward, const ObjectiveOptions& options) {
  LossBuilder builder(forward);
  const TensorId answers = builder.integers(program::kAnswerBoundsName, {builder.segments()[0], 2});
  const TensorId policy = builder.sums("answer.log_probabilities", answers, -1.0F);
  const TensorId nll = builder.sums("sequence.losses", builder.bounds(), 1.0F);
  const TensorId inverse_pairs = builder.number(program::kInversePairsName);
  const TensorId inverse_tokens = builder.number(program::kInverseChosenTokensName);
  const TensorId measures = builder.measures(program::kOddsMeasureCount);
  builder.emit(program::Orpo{.beta = static_cast<float>(options.beta)},
               {policy, nll, answers, inverse_pairs, inverse_tokens}, {measures, builder.loss()});
  return builder.take();
}

constexpr StepInput kOddsMeans[] = {
    {program::kInverseTokensName, one},
    {program::kInversePairsName, inverse_groups},
    {program::kInverseChosenTokensName,
     [](const RowCounts& counts) { return inverse(counts.leading_tokens); }}};

}  // namespace

const Objective kOrpo{.kind = ObjectiveKind::orpo,
                      .group = 2,
                      .data = formats::DataFormat::preference,
                      .learns_prompts = true,
                      .measures = program::kOddsMeasures,
                      .inputs = kOddsMeans,
                      .finish = finish_orpo};

}  // namespace snug::methods
