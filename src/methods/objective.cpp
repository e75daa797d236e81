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

constexpr StepInput kTokenMean[] = {{program::kInverseTokensName, [](const RowCounts& counts) {
                                       return inverse(counts.trained_tokens);
                                     }}};

}  // namespace

const Objective kNextToken{.kind = ObjectiveKind::next_token,
                           .inputs = kTokenMean,
                           .is_token_mean = true,
                           .finish = finish_next_token};

const Objective& objective_of(ObjectiveKind kind) {
  for (const Objective* row : {&kNextToken, &kDpo, &kOrpo, &kKto, &kSimpo, &kGrpo})
    if (row->kind == kind) return *row;
  SNUG_CHECK(false, "no objective {}", base::word_of(kind));
  std::abort();
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
