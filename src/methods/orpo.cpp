// Odds Ratio Preference Optimization:
//
//   before   %losses, %loss = linear_cross_entropy(%hidden, %head, %targets, %inverse_tokens)
//   after    %losses, %token_loss = linear_cross_entropy(%hidden, %head, %targets, %inverse_tokens)
//            %answer.log_probabilities = sum_segments(%losses, %answer_bounds) {scale -1}
//            %sequence.losses = sum_segments(%losses, %query_bounds)
//            %measures, %loss = orpo(%answer.log_probabilities, %sequence.losses, %answer_bounds,
//                                    %inverse_pairs, %inverse_chosen_tokens) {beta}
//
// What was chosen is learned with its prompt, so that its targets are all of its tokens, and those
// of its answer are told by answer_bounds. The host sets inverse_tokens to one, so that the losses
// of tokens are what they are, inverse_pairs to one over the pairs of the step, and
// inverse_chosen_tokens to one over the targets of what was chosen in it.
#include <utility>

#include "methods/objective.h"
#include "program/builder.h"
#include "program/kinds/orpo.h"
#include "program/tensor_names.h"

namespace snug::methods {
namespace {

using program::Lifetime;
using program::Program;
using program::Role;
using program::TensorId;

Program finish_orpo(const Program& forward, const ObjectiveOptions& options) {
  TokenLosses end = token_losses(forward);
  program::Builder builder(std::move(end.program));
  const auto add = [&](std::string_view name, program::Shape shape, Role role, Lifetime lifetime) {
    program::Tensor tensor;
    tensor.name = name;
    tensor.shape = std::move(shape);
    tensor.dtype = role == Role::batch && tensor.shape.rank() == 2 ? program::DType::i32 : end.type;
    tensor.role = role;
    tensor.lifetime = lifetime;
    return builder.add(std::move(tensor));
  };
  const program::Shape segments{end.segments};
  const TensorId answers =
      add(program::kAnswerBoundsName, {end.segments, 2}, Role::batch, Lifetime::step);
  const TensorId policy =
      add("answer.log_probabilities", segments, Role::scalar, Lifetime::program);
  const TensorId nll = add("sequence.losses", segments, Role::scalar, Lifetime::program);
  const TensorId inverse_pairs = add(program::kInversePairsName, {1}, Role::batch, Lifetime::step);
  const TensorId inverse_tokens =
      add(program::kInverseChosenTokensName, {1}, Role::batch, Lifetime::step);
  const TensorId measures =
      add(program::kMeasuresName, {program::kOddsMeasureCount}, Role::scalar, Lifetime::step);
  const TensorId loss = add(program::kLossName, {1}, Role::scalar, Lifetime::step);
  builder.emit(program::SumSegments{.scale = -1.0F}, {end.losses, answers}, {policy});
  builder.emit(program::SumSegments{}, {end.losses, end.bounds}, {nll});
  builder.emit(program::Orpo{.beta = static_cast<float>(options.beta)},
               {policy, nll, answers, inverse_pairs, inverse_tokens}, {measures, loss});
  return builder.take();
}

}  // namespace

const Objective kOrpo{.kind = ObjectiveKind::orpo,
                      .group = 2,
                      .data = formats::DataFormat::preference,
                      .learns_prompts = true,
                      .measures = program::kOddsMeasures,
                      .finish = finish_orpo};

}  // namespace snug::methods
