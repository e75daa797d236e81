#include "methods/objective.h"

#include <cstdlib>

#include "base/error.h"
#include "base/words.h"
#include "methods/loss_builder.h"
#include "program/ir/tensor_names.h"
#include "program/kinds/loss/segment_sums.h"

namespace snug::methods {
namespace {

using program::Program;

Program finish_next_token(const Program& forward, const ObjectiveOptions& options) {
  return with_smoothing(forward, static_cast<float>(options.label_smoothing_factor));
}

// Evaluations also count the tokens whose target is the likeliest: their share is the accuracy.
Program finish_next_token_evaluation(const Program& forward, const ObjectiveOptions& options) {
  return with_hits_counted(finish_next_token(forward, options));
}

constexpr std::string_view kTokenMeasures[] = {"accuracy"};

constexpr StepInput kTokenMean[] = {{program::kInverseTokensName, [](const RowCounts& counts) {
                                       return inverse(counts.trained_tokens);
                                     }}};

}  // namespace

const Objective kNextToken{.kind = ObjectiveKind::next_token,
                           .inputs = kTokenMean,
                           .is_token_mean = true,
                           .finish = finish_next_token,
                           .evaluation_measures = kTokenMeasures,
                           .finish_evaluation = finish_next_token_evaluation};

const Objective& objective_of(ObjectiveKind kind) {
  for (const Objective* row : {&kNextToken, &kDpo, &kOrpo, &kKto, &kSimpo, &kGrpo})
    if (row->kind == kind) return *row;
  SNUG_CHECK(false, "no objective {}", base::word_of(kind));
  std::abort();
}

std::span<const std::string_view> measures_of_evaluation(const Objective& objective) {
  return objective.finish_evaluation == nullptr ? objective.measures
                                                : objective.evaluation_measures;
}

Program finish_evaluation(const Objective& objective, const Program& forward,
                          const ObjectiveOptions& options) {
  const auto finish =
      objective.finish_evaluation == nullptr ? objective.finish : objective.finish_evaluation;
  return finish(forward, options);
}

Program log_probabilities(const Program& forward, const ObjectiveOptions&,
                          std::string_view result) {
  LossBuilder builder(forward);
  const program::TensorId sums =
      builder.add(result, builder.segments(), program::Role::scalar, program::Lifetime::step);
  builder.emit(program::SumSegments{.scale = -1.0F}, {builder.losses(), builder.bounds()}, {sums});
  return builder.take();
}

}  // namespace snug::methods
