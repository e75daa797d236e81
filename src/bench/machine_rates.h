// Rates of a machine that no operation of a calibration step shows: how fast files are read and,
// for a device with memory of its own, the speed of the link to its host and of the host's memory
// during updates of weights.
#pragma once

#include <filesystem>
#include <vector>

#include "backends/backend.h"
#include "plan/time/rates.h"

namespace snug::bench {

// Medians of a few runs each, as samples for plan::Rates: kStorage, and on a device also
// kLinkToDevice, kLinkToHost, kHostJoin and kHostMemory. Files are read as weights are loaded, by
// two threads, from a temporary file of 256 MiB in `folder` that was dropped from the system's
// cache. `threads` threads update weights; 0 means all cores. Throws UserError where the file
// cannot be written.
std::vector<plan::RateSample> machine_rates(backends::Backend& backend, int threads,
                                            const std::filesystem::path& folder);

}  // namespace snug::bench
