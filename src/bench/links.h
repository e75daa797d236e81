// `snug bench links`: measures how fast the ranks exchange what training steps exchange, and adds
// the result to the calibration that plans of such ranks read (docs/calibration.md). The ranks are
// those that a launcher started, or as many as the recipe has devices.
#pragma once

#include <string>
#include <vector>

#include "formats/recipe/recipe.h"
#include "plan/time/rates.h"

namespace snug::bench {

// All ranks call it at once; each returns 0. Rank 0 prints a table, or with `json` the samples, on
// standard output, and writes them into the calibration file that plan::find_calibration_file finds
// for the threads of a rank; where this machine has none, it says how to make one. Throws UserError
// when there is only one rank, when the recipe names a calibration that does not exist, and when
// another rank stops.
int links(formats::Recipe recipe, bool json);

// One line for each sample: the collective, the bytes that a rank sends, microseconds, and bytes
// sent per second.
std::string link_table(const std::vector<plan::RateSample>& samples);

}  // namespace snug::bench
