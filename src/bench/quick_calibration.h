// The short calibration that a first run does on a machine without one: it measures for a few
// seconds before it plans and keeps the result in the cache, so that the planned time of a step is
// not based on assumptions.
#pragma once

#include <optional>

#include "formats/recipe/recipe.h"

namespace snug::bench {

// The value of SNUG_CALIBRATION_SECONDS in the environment; nothing where it is not set. Throws
// UserError unless it is a number from 0 to 600.
std::optional<double> calibration_seconds_wanted();

// How many seconds a first run measures: the value of SNUG_CALIBRATION_SECONDS in the environment,
// else 5; with 0 no run measures by itself. Throws UserError unless it is a number from 0 to 600.
double quick_calibration_seconds();

// Does something only on the cpu backend, where the recipe names no calibration and none is found
// for this machine: runs `snug bench calibrate-quickly` in a separate process, so that its memory
// does not count as the run's, and waits for it. That process ends with this one, however this one
// ends. Reports on standard error what it does and what it could not do; a failure is not an error,
// since plans can use assumed rates. Throws UserError for a calibration that cannot be read.
void calibrate_before_first_run(const formats::Recipe& recipe);

}  // namespace snug::bench
