// `snug train`: from a recipe to a tuned model, in the memory that was planned.
#pragma once

#include <functional>

#include "formats/recipe/recipe.h"

namespace snug::train {

// The first rank calls it once all are connected, before anything is opened.
using MeasureMachine = std::function<void(const formats::Recipe&)>;

// The first rank calls it when the result is there and the memory of the run is free; the others
// wait, however long it takes. Its exit code is that of all. The recipe is that of the run.
using AfterRun = std::function<int(const formats::Recipe&)>;

// Runs the whole job; of several ranks, this one's share of it (runtime/process/job_ranks.h).
// Returns 0, or 128 + N when signal N (SIGINT, SIGTERM, SIGHUP) stopped it after saving a
// checkpoint, after which `after` is not called. What is said goes to standard error and, from when
// it is there, to run.log in the folder. Throws UserError; with exit code 3 when the job does not
// fit the budget.
int train(const formats::Recipe& recipe, const MeasureMachine& measure = {},
          const AfterRun& after = {});

}  // namespace snug::train
