// What a first run on a machine without a calibration does before it plans: measures for a few
// seconds and keeps the result in the cache, so that the plan's time of a step is no assumption.
#pragma once

#include <optional>

#include "formats/recipe/recipe.h"

namespace snug::bench {

// What SNUG_CALIBRATION_SECONDS says in the environment; nothing where it is not set. Throws
// UserError for what is no number from 0 to 600.
std::optional<double> calibration_seconds_wanted();

// How long a first run measures: what the environment says in SNUG_CALIBRATION_SECONDS, else 5; at
// 0 no run measures by itself. Throws UserError for what is no number from 0 to 600.
double quick_calibration_seconds();

// On the cpu backend, where the recipe names no calibration and none is found for this machine:
// runs `snug bench calibrate-quickly` in a process of its own, since the memory that measuring
// takes is none of the run's, and waits for it. That process ends with this one, however this one
// ends. Says on standard error what it does, and what it could not do: a failure is no error,
// plans then take assumed rates. Throws UserError for a calibration that cannot be read.
void calibrate_before_first_run(const formats::Recipe& recipe);

}  // namespace snug::bench
