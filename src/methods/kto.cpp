// Kahneman-Tversky Optimization:
//
//   before   %losses, %loss = linear_cross_entropy(%hidden, %head, %targets, %inverse_tokens)
//   after    %losses, %token_loss = linear_cross_entropy(%hidden, %head, %targets, %inverse_tokens)
//            %policy.log_probabilities = sum_segments(%losses, %query_bounds) {scale -1}
//            %kl_sums = kl_estimate(%policy.log_probabilities, %reference.log_probabilities,
//                                   %labels)
//            %measures, %loss = kto(%policy.log_probabilities, %reference.log_probabilities,
//                                   %labels, %kl_sums, %inverse_pairs, %inverse_desirable,
//                                   %inverse_undesirable) {beta, weights}
//
// Each example has two segments: its own answer, and another example's answer to the same prompt,
// from whose log-probabilities the KL divergence is estimated. The host sets inverse_tokens to 1,
// so that the losses of tokens are not scaled, and inverse_pairs to 1 / (examples of the step).
#include "program/kinds/loss/kto.h"

#include <limits>

#include "methods/loss_builder.h"
#include "methods/objective.h"
#include "program/ir/tensor_names.h"

namespace snug::methods {
namespace {

using program::Program;
using program::TensorId;

constexpr int64_t kSegmentsOfExample = 2;

Program finish_kto(const Program& forward, const ObjectiveOptions& options) {
  LossBuilder builder(forward);
  const TensorId policy = builder.sums("policy.log_probabilities", builder.bounds(), -1.0F);
  const TensorId reference = builder.reference(options.reference, builder.segments());
  const TensorId labels =
      builder.integers(program::kLabelsName, {builder.segments()[0] / kSegmentsOfExample});
  const TensorId kl_sums =
      builder.add("kl_sums", {2}, program::Role::scalar, program::Lifetime::program);
  const TensorId inverse_pairs = builder.number(program::kInversePairsName);
  const TensorId inverse_desirable = builder.number(program::kInverseDesirableName);
  const TensorId inverse_undesirable = builder.number(program::kInverseUndesirableName);
  const TensorId measures = builder.measures(program::kLabelMeasureCount);
  builder.emit(program::KlEstimate{}, {policy, reference, labels}, {kl_sums});
  builder.emit(
      program::Kto{.beta = static_cast<float>(options.beta),
                   .desirable_weight = static_cast<float>(options.desirable_weight),
                   .undesirable_weight = static_cast<float>(options.undesirable_weight)},
      {policy, reference, labels, kl_sums, inverse_pairs, inverse_desirable, inverse_undesirable},
      {measures, builder.loss()});
  return builder.take();
}

// The mean of no values is NaN, which is not reported.
float mean_over(int64_t count) {
  return count > 0 ? inverse(count) : std::numeric_limits<float>::quiet_NaN();
}

constexpr StepInput kLabelMeans[] = {
    {program::kInverseTokensName, one},
    {program::kInversePairsName, inverse_groups},
    {program::kInverseDesirableName,
     [](const RowCounts& counts) { return mean_over(counts.desirable); }},
    {program::kInverseUndesirableName,
     [](const RowCounts& counts) { return mean_over(counts.groups - counts.desirable); }}};

}  // namespace

const Objective kKto{.kind = ObjectiveKind::kto,
                     .group = kSegmentsOfExample,
                     .data = formats::DataFormat::unpaired,
                     .compares = true,
                     .is_labelled = true,
                     .measures = program::kLabelMeasures,
                     .inputs = kLabelMeans,
                     .finish = finish_kto};

}  // namespace snug::methods
