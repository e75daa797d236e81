// Rates of a machine that no operation of a calibration step shows: how fast files are read, and,
// of a device with memory of its own, the link to its host and the host's memory as updates of
// weights move it.
#pragma once

#include <filesystem>
#include <vector>

#include "backends/backend.h"
#include "plan/time/rates.h"

namespace snug::bench {

// Medians of a few runs each, as samples that plan::Rates takes: kStorage, and on a device
// kLinkToDevice, kLinkToHost, kHostJoin and kHostMemory. Files are read as weights are loaded, by
// two threads, from a temporary file of 256 MiB in `folder`, of which the system was asked to cache
// nothing; `threads` update weights, 0 being all cores. Throws UserError where the file cannot be
// written.
std::vector<plan::RateSample> machine_rates(backends::Backend& backend, int threads,
                                            const std::filesystem::path& folder);

}  // namespace snug::bench
