// `snug bench calibrate`: measures how fast this machine runs each kind of operation at shapes
// between those of models of 5 million and of a billion parameters, and writes the calibration file
// that plans read (plan/calibration_file.h, docs/calibration.md).
#pragma once

#include <functional>
#include <string>

#include "backends/backend.h"
#include "bench/calibration_steps.h"
#include "formats/recipe.h"
#include "plan/calibration_file.h"

namespace snug::bench {

// Measures with the recipe's backend and threads and writes to plan::calibration_path. Prints
// progress on stderr; what was written, or with `json` the whole file, on stdout. Returns 0. Throws
// UserError when the file cannot be written.
int calibrate(const formats::Recipe& recipe, bool json, Grid grid = Grid::full);

// The measurement alone. `progress` gets a line for every step shape.
plan::Calibration measure(backends::Backend& backend, Grid grid,
                          const std::function<void(const std::string&)>& progress);

}  // namespace snug::bench
