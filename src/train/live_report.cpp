#include "train/live_report.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <exception>

#include "base/console.h"
#include "base/file.h"
#include "train/run_folder.h"

namespace snug::train {
namespace {

// A page that took a second is next written after a hundred.
constexpr int kMaxShare = 100;

std::string time_now() {
  return fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", fmt::gmtime(std::time(nullptr)));
}

}  // namespace

LiveReport::LiveReport(const plan::PlannedTraining& planned, const std::filesystem::path& folder,
                       int64_t total_steps, Clock::duration interval)
    : planned_(planned),
      metrics_(folder / RunFolder::kMetrics),
      report_(folder / RunFolder::kReport),
      total_steps_(total_steps),
      interval_(interval),
      due_(Clock::now() + interval) {}

const report::RunPage& LiveReport::page() {
  if (!page_) page_.emplace(planned_, metrics_, metrics_.parent_path() / RunFolder::kSamples);
  return *page_;
}

void LiveReport::write(const report::RunProgress& progress) {
  try {
    base::write_file_atomically(report_, page().unfinished(progress));
  } catch (const std::exception& error) {
    if (!has_failed_) base::say("{} is not up to date: {}", report_.string(), error.what());
    has_failed_ = true;
  }
}

void LiveReport::follow() {
  const Clock::time_point start = Clock::now();
  if (start < due_) return;
  write(
      {.state = "running", .goes_on = true, .total_steps = total_steps_, .written_at = time_now()});
  const Clock::time_point end = Clock::now();
  due_ = end + std::max(interval_, kMaxShare * (end - start));
}

void LiveReport::stop(const std::string& state) {
  write({.state = state, .goes_on = false, .total_steps = total_steps_, .written_at = time_now()});
}

void LiveReport::finish(const plan::Measured& measured) {
  base::write_file_atomically(report_, page().finished(measured));
}

}  // namespace snug::train
