#include "train/planned_as_first.h"

#include "plan/choice/chosen.h"

namespace snug::train {

plan::PlannedTraining planned_as_first(const plan::TrainingInputs& inputs,
                                       const plan::MeasureProcess& measure,
                                       const runtime::Ranks& ranks) {
  if (ranks.is_first()) {
    plan::PlannedTraining planned = plan::assemble_training(inputs, measure);
    ranks.of_first(plan::chosen_text(planned.chosen()));
    return planned;
  }
  plan::TrainingInputs alike = inputs;
  alike.chosen = plan::chosen_from_text(ranks.of_first({}));
  return plan::assemble_training(alike, measure);
}

}  // namespace snug::train
