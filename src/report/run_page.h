// A run as an HTML page: what it measured next to its plan, its curves, and the plan's own page.
#pragma once

#include <filesystem>
#include <string>

#include "plan/document/measured.h"
#include "plan/job/assembly.h"

namespace snug::report {

// `metrics` is metrics.jsonl, whose incomplete lines are skipped. Throws UserError where the file
// cannot be read.
std::string run_page(const plan::PlannedTraining& planned, const plan::Measured& measured,
                     const std::filesystem::path& metrics);

}  // namespace snug::report
