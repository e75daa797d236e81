// A run as an HTML page: what it measured next to its plan, its curves, and the plan's own page.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "plan/document/measured.h"
#include "plan/job/assembly.h"

namespace snug::report {

// A curve by its key in metrics.jsonl, and its title.
struct NamedCurve {
  std::string key;
  std::string name;
};

// `metrics` is metrics.jsonl, whose incomplete lines are skipped; `more`: curves of this run, after
// those of every run. Throws UserError where the file cannot be read.
std::string run_page(const plan::PlannedTraining& planned, const plan::Measured& measured,
                     const std::filesystem::path& metrics, std::span<const NamedCurve> more = {});

}  // namespace snug::report
