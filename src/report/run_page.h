// A run as an HTML page: how it stands, what it measured next to its plan, its curves, and the
// plan's own page.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "plan/document/measured.h"
#include "plan/job/assembly.h"
#include "report/html.h"
#include "report/metrics_curves.h"

namespace snug::report {

// How a run stands that has not finished.
struct RunProgress {
  std::string state;     // "running", "stopped after step 10"
  bool goes_on = false;  // a browser then loads the page again from time to time
  int64_t total_steps = 0;
  std::string written_at;  // when the page was made
};

// Writes the page of one run as often as it is asked for. The part that does not change is drawn
// once. One thread.
class RunPage {
 public:
  // `metrics` is metrics.jsonl, and `samples` samples.jsonl, which need not be there; incomplete
  // lines of both are skipped.
  RunPage(const plan::PlannedTraining& planned, std::filesystem::path metrics,
          std::filesystem::path samples = {});

  // Both throw UserError where a file cannot be read.
  std::string finished(const plan::Measured& measured) const;
  std::string unfinished(const RunProgress& progress) const;

 private:
  const plan::PlanDocument& document_;
  std::filesystem::path metrics_;
  std::filesystem::path samples_;
  Page plan_;
};

}  // namespace snug::report
