// `snug bench calibrate`: measures how fast this machine runs each kind of operation at shapes
// between those of models of 5 million and of a billion parameters, and writes the calibration file
// that plans read (plan/time/calibration_file.h, docs/calibration.md).
#pragma once

#include "bench/calibration_steps.h"
#include "formats/recipe/recipe.h"

namespace snug::bench {

// Measures with the recipe's backend and threads, of the grid only the first max_steps steps where
// the recipe says so and only those that are likely to end within SNUG_CALIBRATION_SECONDS where
// the environment has that and it is not 0 (the quick grid: quick_calibration_seconds()), and
// writes to plan::calibration_path; what the quick grid gave, to plan::quick_calibration_path where
// the recipe names no file. Prints progress on stderr; what was written, or with `json` the whole
// file, on stdout. Returns 0. Throws UserError when the file cannot be written.
int calibrate(const formats::Recipe& recipe, Grid grid, bool json);

}  // namespace snug::bench
