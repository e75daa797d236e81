// The plan of a run on several ranks, which must be that of the same job on all.
#pragma once

#include "plan/job/assembly.h"
#include "runtime/process/job_ranks.h"

namespace snug::train {

// Plans the job on every rank. What the recipe leaves open the first chooses for all: by memory and
// calibrations of their own they might choose otherwise. All must call it, with recipes that are
// alike; what the first throws ends the others. `inputs` has nothing chosen.
plan::PlannedTraining planned_as_first(const plan::TrainingInputs& inputs,
                                       const plan::MeasureProcess& measure,
                                       const runtime::Ranks& ranks);

}  // namespace snug::train
