// Group Relative Policy Optimization:
//
//   before   %losses, %loss = linear_cross_entropy(%hidden, %head, %targets, %inverse_tokens)
//   after    %losses, %token_loss = linear_cross_entropy(%hidden, %head, %targets,
//                                                        %inverse_tokens) {scale 1/temperature}
//            %policy.log_probabilities = scale(%losses) {factor -1}
//            %terms, %measures, %loss = grpo(%policy.log_probabilities, %query_bounds, %advantages,
//                                            %token_weights, %inverse_learned_tokens,
//                                            %inverse_pairs, %old.log_probabilities,
//                                            %reference.log_probabilities)
//
// Where the forward pass drops something, it is not the model that made the answers, which drops
// nothing. How far it is from that one is measured by the same operation, with the two in the
// places of policy and reference: kl is then the mean of ratio - log(ratio) - 1 over the tokens.
//
//            %dropout_terms, %dropout_measures, %dropout_loss = grpo(%old.log_probabilities, ...,
//                                                           %policy.log_probabilities) {reference}
//
// The host sets inverse_tokens to 1, so that the losses of tokens are not scaled, and with each
// batch what was found out of the answers: the advantage of each, what each of its tokens counts
// (train/rewards/token_weights.h), and the log-probabilities that they were made with.
#include "program/kinds/loss/grpo.h"

#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "methods/loss_builder.h"
#include "methods/objective.h"
#include "program/ir/result_names.h"
#include "program/ir/tensor_names.h"

namespace snug::methods {
namespace {

using program::Lifetime;
using program::Program;
using program::TensorId;

// What training draws, it draws for dropout.
bool drops(const Program& forward) { return forward.find(program::kRandomName) != program::kNone; }

void measure_dropout(LossBuilder& builder, std::vector<TensorId> operands) {
  const auto add = [&](std::string_view name, const program::Shape& shape, Lifetime lifetime) {
    return builder.add(name, shape, program::Role::scalar, lifetime);
  };
  const TensorId terms =
      add("dropout_terms", {builder.segments()[0], program::kRewardedTermCount}, Lifetime::program);
  const TensorId measures =
      add(program::kDropoutMeasuresName, {program::kRewardedMeasureCount}, Lifetime::step);
  const TensorId loss = add("dropout_loss", {1}, Lifetime::program);
  builder.emit(program::Grpo{.reference = true}, std::move(operands), {terms, measures, loss});
}

Program finish_grpo(const Program& forward, const ObjectiveOptions& options) {
  LossBuilder builder(forward, options.temperature);
  const bool compares = options.reference != ReferenceModel::none;
  const program::Grpo grpo{.epsilon = static_cast<float>(options.epsilon),
                           .epsilon_high = static_cast<float>(options.epsilon_high),
                           .delta = static_cast<float>(options.delta),
                           .beta = compares ? static_cast<float>(options.beta) : 0.0F,
                           .sequence = options.sequence_ratio,
                           .old = !options.on_policy,
                           .reference = compares,
                           .corrected = options.corrects_divergence};
  const TensorId policy = builder.of_tokens("policy.log_probabilities", Lifetime::program);
  const std::array others{builder.bounds(),
                          builder.numbers(program::kAdvantagesName, builder.segments()),
                          builder.numbers(program::kTokenWeightsName, builder.tokens()),
                          builder.number(program::kInverseLearnedTokensName),
                          builder.number(program::kInversePairsName)};
  const auto operands = [&](TensorId first) {
    std::vector<TensorId> all{first};
    all.insert(all.end(), others.begin(), others.end());
    return all;
  };
  std::vector<TensorId> reads = operands(policy);
  const bool is_other = drops(forward);
  if (grpo.old || is_other) {
    const TensorId made_with = builder.numbers(program::kOldName, builder.tokens());
    if (grpo.old) reads.push_back(made_with);
    std::vector<TensorId> compared = operands(made_with);
    compared.push_back(policy);
    if (is_other) measure_dropout(builder, std::move(compared));
  }
  if (compares) reads.push_back(builder.reference(options.reference, builder.tokens()));
  const TensorId terms = builder.add("terms", {builder.segments()[0], program::kRewardedTermCount},
                                     program::Role::scalar, Lifetime::program);
  const TensorId measures = builder.measures(program::kRewardedMeasureCount);
  builder.emit(grpo, std::move(reads), {terms, measures, builder.loss()});
  return builder.take();
}

// The log-probabilities of tokens, (tokens) f32; 0 for tokens without loss.
Program token_log_probabilities(const Program& forward, const ObjectiveOptions& options,
                                std::string_view result) {
  LossBuilder builder(forward, options.temperature);
  builder.of_tokens(result, Lifetime::step);
  return builder.take();
}

constexpr StepInput kAnswerMeans[] = {
    {program::kInverseTokensName, one},
    {program::kInverseLearnedTokensName,
     [](const RowCounts& counts) { return inverse(counts.trained_tokens); }},
    {program::kInversePairsName, inverse_groups}};

}  // namespace

// A loss of 0 and a norm of 0 are usual: the first where answers are learned by those who made
// them, the second where all of them are rewarded alike.
const Objective kGrpo{.kind = ObjectiveKind::grpo,
                      .makes_answers = true,
                      .measures = program::kRewardedMeasures,
                      .inputs = kAnswerMeans,
                      .finish = finish_grpo,
                      .guards = {formats::Guard::not_finite, formats::Guard::equal_rewards,
                                 formats::Guard::worse_evaluation, formats::Guard::cut_answers,
                                 formats::Guard::low_entropy, formats::Guard::high_kl},
                      .reference = token_log_probabilities};

}  // namespace snug::methods
