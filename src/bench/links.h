// `snug bench links`: measures how fast the ranks that a launcher started, or as many as the recipe
// has devices, send each other what training steps do, and adds that to the calibration that plans
// of such ranks read (docs/calibration.md).
#pragma once

#include <string>
#include <vector>

#include "formats/recipe/recipe.h"
#include "plan/time/rates.h"

namespace snug::bench {

// All ranks call it at once; each returns 0. Rank 0 prints a table, or with `json` the samples, on
// standard output, and writes them into the calibration file that plan::find_calibration_file finds
// with the threads of a rank; where there is none of this machine, it says how to make one. Throws
// UserError for one rank alone, where the recipe names a calibration that is not there, and where
// another rank stops.
int links(formats::Recipe recipe, bool json);

// A line for each sample: what, bytes that a rank sends, microseconds, bytes that it sends a
// second.
std::string link_table(const std::vector<plan::RateSample>& samples);

}  // namespace snug::bench
