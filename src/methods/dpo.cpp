// Direct Preference Optimization:
//
//   before   %losses, %loss = linear_cross_entropy(%hidden, %head, %targets, %inverse_tokens)
//   after    %losses, %token_loss = linear_cross_entropy(%hidden, %head, %targets, %inverse_tokens)
//            %policy.log_probabilities = sum_segments(%losses, %query_bounds) {scale -1}
//            %measures, %loss = dpo(%policy.log_probabilities, %reference.log_probabilities,
//                                   %query_bounds, %inverse_pairs) {beta}
//
// The host sets inverse_tokens to 1, so that the losses of tokens are not scaled, and inverse_pairs
// to 1 / (pairs of the step).
#include "program/kinds/loss/dpo.h"

#include <vector>

#include "methods/loss_builder.h"
#include "methods/objective.h"
#include "program/ir/tensor_names.h"

namespace snug::methods {
namespace {

using program::Program;
using program::TensorId;

Program finish_dpo(const Program& forward, const ObjectiveOptions& options) {
  LossBuilder builder(forward);
  const TensorId policy = builder.sums("policy.log_probabilities", builder.bounds(), -1.0F);
  const TensorId reference = builder.reference(options.reference, builder.segments());
  const TensorId inverse_pairs = builder.number(program::kInversePairsName);
  const TensorId measures = builder.measures(program::kPreferenceMeasureCount);
  const program::Dpo dpo{.beta = static_cast<float>(options.beta),
                         .form = options.loss,
                         .label_smoothing = static_cast<float>(options.label_smoothing),
                         .means = base::compares_means(options.loss)};
  std::vector<TensorId> reads{policy, reference, builder.bounds(), inverse_pairs};
  if (dpo.means)
    reads.push_back(builder.integers(program::kAnswerBoundsName, {builder.segments()[0], 2}));
  builder.emit(dpo, reads, {measures, builder.loss()});
  return builder.take();
}

constexpr StepInput kPairMeans[] = {{program::kInverseTokensName, one},
                                    {program::kInversePairsName, inverse_groups}};

}  // namespace

const Objective kDpo{.kind = ObjectiveKind::dpo,
                     .group = 2,
                     .data = formats::DataFormat::preference,
                     .compares = true,
                     .measures = program::kPreferenceMeasures,
                     .inputs = kPairMeans,
                     .finish = finish_dpo,
                     .has_margin = true};

}  // namespace snug::methods
