// report.html while the run goes on: written anew from time to time, so seldom that it takes no
// more than a hundredth of the run's time.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "report/run_page.h"

namespace snug::train {

class LiveReport {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kInterval{10};

  // `planned` must outlive the object. `folder`: of the run, with its metrics.jsonl.
  LiveReport(const plan::PlannedTraining& planned, const std::filesystem::path& folder,
             int64_t total_steps, Clock::duration interval = kInterval);

  // A line was written to metrics.jsonl. Where the page cannot be written, that is said once, and
  // nothing is thrown: the run is worth more than its page.
  void follow();
  // The last page of a run that did not finish; throws nothing either.
  void stop(const std::string& state);
  // The last page of one that did. Throws UserError.
  void finish(const plan::Measured& measured);

 private:
  const report::RunPage& page();
  void write(const report::RunProgress& progress);

  const plan::PlannedTraining& planned_;
  std::filesystem::path metrics_;
  std::filesystem::path report_;
  int64_t total_steps_;
  Clock::duration interval_;
  Clock::time_point due_;
  std::optional<report::RunPage> page_;  // once there is one to write
  bool has_failed_ = false;
};

}  // namespace snug::train
