// Direct Preference Optimization:
//
//   before   %losses, %loss = linear_cross_entropy(%hidden, %head, %targets, %inverse_tokens)
//   after    %losses, %token_loss = linear_cross_entropy(%hidden, %head, %targets, %inverse_tokens)
//            %policy.log_probabilities = sum_segments(%losses, %query_bounds) {scale -1}
//            %measures, %loss = dpo(%policy.log_probabilities, %reference.log_probabilities,
//                                   %query_bounds, %inverse_pairs) {beta}
//
// The host sets inverse_tokens to one, so that the losses of tokens are what they are, and
// inverse_pairs to one over the pairs of the step.
#include <utility>

#include "methods/objective.h"
#include "program/builder.h"
#include "program/kinds/dpo.h"
#include "program/tensor_names.h"

namespace snug::methods {
namespace {

using program::Lifetime;
using program::Program;
using program::Role;
using program::TensorId;

Program finish_dpo(const Program& forward, const ObjectiveOptions& options) {
  TokenLosses end = token_losses(forward);
  program::Builder builder(std::move(end.program));
  const auto add = [&](std::string_view name, int64_t count, Role role, Lifetime lifetime) {
    program::Tensor tensor;
    tensor.name = name;
    tensor.shape = {count};
    tensor.dtype = end.type;
    tensor.role = role;
    tensor.lifetime = lifetime;
    return builder.add(std::move(tensor));
  };
  const bool is_given = options.reference == ReferenceModel::kept;
  const TensorId policy =
      add("policy.log_probabilities", end.segments, Role::scalar, Lifetime::program);
  const TensorId reference = add(program::kReferenceName, end.segments,
                                 is_given ? Role::batch : Role::scalar, Lifetime::step);
  const TensorId inverse_pairs = add(program::kInversePairsName, 1, Role::batch, Lifetime::step);
  const TensorId measures =
      add(program::kMeasuresName, program::kPreferenceMeasureCount, Role::scalar, Lifetime::step);
  const TensorId loss = add(program::kLossName, 1, Role::scalar, Lifetime::step);
  builder.emit(program::SumSegments{.scale = -1.0F}, {end.losses, end.bounds}, {policy});
  builder.emit(program::Dpo{.beta = static_cast<float>(options.beta)},
               {policy, reference, end.bounds, inverse_pairs}, {measures, loss});
  return builder.take();
}

}  // namespace

const Objective kDpo{.kind = ObjectiveKind::dpo,
                     .group = 2,
                     .data = formats::DataFormat::preference,
                     .compares = true,
                     .measures = program::kPreferenceMeasures,
                     .finish = finish_dpo};

}  // namespace snug::methods
