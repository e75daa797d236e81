#include "bench/calibrate.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "backends/recipe_backend.h"
#include "base/console.h"
#include "base/error.h"
#include "base/file.h"
#include "bench/machine_rates.h"
#include "bench/operation_timer.h"
#include "bench/quick_calibration.h"
#include "plan/calibration_file.h"
#include "plan/clock.h"

namespace snug::bench {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// Of the seconds that a user waits for: the process starts, and ends.
constexpr double kAroundMeasuring = 0.3;

// A step that takes this much longer than its fastest repeat shared the machine with others.
constexpr double kDisturbed = 1.15;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void print_summary(const plan::Calibration& calibration, const fs::path& path) {
  const plan::Roofline& roofline = plan::Rates(calibration.samples).roofline();
  fmt::print(
      "{}\n{}\n{} samples\nlarge products {:.0f} GFLOP/s, in f32 {:.0f} GFLOP/s; memory "
      "{:.1f} GB/s\nwritten to {}\n",
      calibration.machine.processor, calibration.machine.libraries, calibration.samples.size(),
      roofline.flops_per_second * 1e-9, roofline.f32_flops_per_second * 1e-9,
      roofline.bytes_per_second * 1e-9, path.string());
}

std::vector<CalibrationStep> steps_of(const formats::Recipe& recipe, Grid grid,
                                      const backends::Backend& backend) {
  std::vector<CalibrationStep> steps = calibration_steps(backend, grid);
  if (recipe.max_steps > 0 && recipe.max_steps < static_cast<int64_t>(steps.size()))
    steps.resize(static_cast<size_t>(recipe.max_steps));
  return steps;
}

// Prints a line for every step on stderr.
plan::Calibration measure(backends::Backend& backend, const std::vector<CalibrationStep>& steps) {
  OperationTimes times;
  const auto start = Clock::now();
  int disturbed = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    const StepTiming timing = time_operations(steps[i], backend, times);
    if (timing.median_seconds > kDisturbed * timing.least_seconds) ++disturbed;
    base::say("{:>3}/{} {:5.0f} s  {}: {:.1f} ms, {} repeats", i + 1, steps.size(),
              seconds_since(start), describe(steps[i]), timing.median_seconds * 1e3,
              timing.repeats);
  }
  if (disturbed * 4 > static_cast<int>(steps.size()))
    base::say(
        "{} of {} steps varied by more than {:.0f} %: something else kept this machine busy; "
        "calibrate again when it is idle",
        disturbed, steps.size(), (kDisturbed - 1) * 100);
  return {.machine = plan::identify_machine(backend), .samples = times.samples()};
}

// Adds the machine's own rates, and prints a line for each on stderr.
void add_machine_rates(backends::Backend& backend, const formats::Recipe& recipe,
                       const fs::path& folder, plan::Calibration& calibration) {
  for (plan::RateSample& sample :
       machine_rates(backend, static_cast<int>(recipe.threads), folder)) {
    base::say("{}: {:.2f} GB/s", sample.name, sample.work / sample.seconds * 1e-9);
    calibration.samples.push_back(std::move(sample));
  }
}

// Whether the step is likely to be measured in so many seconds, by what was measured before it.
bool fits(const CalibrationStep& step, const backends::Backend& backend,
          const OperationTimes& times, double seconds) {
  if (times.samples().empty()) return true;
  const double predicted =
      plan::step_seconds(plan::plan_training(step.spec, backend), step.spec.accumulation,
                         plan::Rates(times.samples()), program::full_rows(step.segment_tokens));
  // It runs once more to warm up, and making it ready takes about as long as that.
  return predicted * (2 + step.least_repeats) < seconds;
}

// Samples of links in the file that is written over: another verb measures them. Of another machine
// or of another format they are dropped.
std::vector<plan::RateSample> earlier_links(const fs::path& path,
                                            const plan::MachineIdentity& machine) {
  std::error_code unknown;
  if (!fs::exists(path, unknown)) return {};
  try {
    plan::Calibration earlier = plan::read_calibration(path);
    if (!earlier.machine.same_machine(machine)) return {};
    std::erase_if(earlier.samples,
                  [](const plan::RateSample& sample) { return !plan::is_of_links(sample); });
    return std::move(earlier.samples);
  } catch (const base::UserError&) {
    return {};  // of another version: require_replaceable found it to be a calibration
  }
}

// Steps that no longer fit are left out. Written after every step: who waits may lose patience.
plan::Calibration measure_quickly(backends::Backend& backend,
                                  const std::vector<CalibrationStep>& steps, const fs::path& path,
                                  const std::vector<plan::RateSample>& links) {
  plan::Calibration calibration{
      .machine = plan::identify_machine(backend), .samples = {}, .quick = true};
  OperationTimes times;
  const double budget = quick_calibration_seconds() - kAroundMeasuring;
  const auto start = Clock::now();
  for (const CalibrationStep& step : steps) {
    if (!fits(step, backend, times, budget - seconds_since(start))) continue;
    const StepTiming timing = time_operations(step, backend, times);
    base::say("{:5.2f} s  {}: {:.1f} ms, {} repeats", seconds_since(start), describe(step),
              timing.median_seconds * 1e3, timing.repeats);
    calibration.samples = times.samples();
    plan::replace_samples(calibration, links);
    base::write_file_atomically(path, plan::to_json(calibration));
  }
  return calibration;
}

fs::path path_for(const formats::Recipe& recipe, Grid grid, const plan::MachineIdentity& machine) {
  if (grid == Grid::quick && recipe.calibration.empty())
    return plan::quick_calibration_path(machine);  // Snug's own, whatever is in it
  fs::path path = plan::calibration_path(recipe, machine);
  plan::require_replaceable(path);
  return path;
}

}  // namespace

int calibrate(const formats::Recipe& recipe, Grid grid, bool json) {
  const auto backend = backends::open_backend(recipe);
  const fs::path path = path_for(recipe, grid, plan::identify_machine(*backend));
  if (path.has_parent_path()) fs::create_directories(path.parent_path());
  const std::vector<CalibrationStep> steps = steps_of(recipe, grid, *backend);
  const std::vector<plan::RateSample> links = earlier_links(path, plan::identify_machine(*backend));
  plan::Calibration calibration = grid == Grid::quick
                                      ? measure_quickly(*backend, steps, path, links)
                                      : measure(*backend, steps);
  if (grid == Grid::full) add_machine_rates(*backend, recipe, path.parent_path(), calibration);
  plan::replace_samples(calibration, links);
  if (!links.empty())
    base::say("{} samples of links between ranks are kept; 'snug bench links' measures them again",
              links.size());
  const std::string text = plan::to_json(calibration);
  base::write_file_atomically(path, text);
  if (json)
    fmt::print("{}", text);
  else
    print_summary(calibration, path);
  return 0;
}

}  // namespace snug::bench
