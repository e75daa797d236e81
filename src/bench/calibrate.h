// `snug bench calibrate`: measures how fast this machine runs each kind of operation, at shapes
// found in models between 5 million and a billion parameters, and writes the calibration file that
// plans read (plan/time/calibration_file.h, docs/calibration.md).
#pragma once

#include "bench/calibration_steps.h"
#include "formats/recipe/recipe.h"

namespace snug::bench {

// Measures with the recipe's backend and threads. Of the grid it runs only the first max_steps
// steps where the recipe sets that, and only the steps that are likely to end within
// SNUG_CALIBRATION_SECONDS where the environment sets it to more than 0 (for the quick grid: within
// quick_calibration_seconds()). Writes to plan::calibration_path, or to
// plan::quick_calibration_path for the quick grid where the recipe names no file. Prints progress
// on stderr, and on stdout what was written, or with `json` the whole file. Returns 0. Throws
// UserError when the file cannot be written.
int calibrate(const formats::Recipe& recipe, Grid grid, bool json);

}  // namespace snug::bench
