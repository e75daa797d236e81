// How long a step would take on an assumed machine: what candidates of a search are ranked by while
// nothing is known about the machine. Only the order means something.
#pragma once

#include "plan/job.h"

namespace snug::plan {

// Seconds of a whole step (micro first, next x (accumulation - 1), update) with one rate for
// products and one bandwidth for everything else, as planning.md's roofline has it. Pure.
double assumed_step_seconds(const Job& job, const TrainingSpec& spec);

}  // namespace snug::plan
