#include "bench/calibrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <limits>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "backends/recipe_backend.h"
#include "base/console.h"
#include "base/error.h"
#include "base/file.h"
#include "base/seconds_since.h"
#include "bench/machine_rates.h"
#include "bench/operation_timer.h"
#include "bench/quick_calibration.h"
#include "plan/time/calibration_file.h"
#include "plan/time/clock.h"

namespace snug::bench {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// The seconds in which the process starts and ends, which are part of the time that a user waits.
constexpr double kAroundMeasuring = 0.3;

// The first step is measured again at the end. If it then takes longer by more than this factor,
// the machine has become slower meanwhile. (If it takes less, the machine was cold at first.)
constexpr double kMoved = 1.4;

// Whether so many steps were disturbed, more than a quarter, that plans would show it.
bool many(int disturbed, int steps) { return disturbed * 4 > steps; }

void print_summary(const plan::Calibration& calibration, const fs::path& path) {
  const plan::Roofline& roofline = plan::Rates(calibration.samples).roofline();
  base::print(
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

// Adds the rates that belong to the machine rather than to an operation, and prints a line for each
// on stderr.
void add_machine_rates(backends::Backend& backend, const formats::Recipe& recipe,
                       const fs::path& folder, plan::Calibration& calibration) {
  for (plan::RateSample& sample :
       machine_rates(backend, static_cast<int>(recipe.threads), folder)) {
    if (sample.name == plan::kHostJoin)
      base::say("{}: {:.1f} us", sample.name, sample.seconds * 1e6);
    else
      base::say("{}: {:.2f} GB/s", sample.name, sample.work / sample.seconds * 1e-9);
    calibration.samples.push_back(std::move(sample));
  }
}

// The samples of links in the file that will be overwritten, which another command measured. Those
// of another machine or another format are dropped.
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
    return {};  // a file of another version: require_replaceable checked that it is a calibration
  }
}

// How long steps may be measured, and the file that keeps the results so far, in case the user
// interrupts. Without a limit nothing is written before the end.
struct Limit {
  double seconds = std::numeric_limits<double>::infinity();
  fs::path path;
  std::vector<plan::RateSample> links;
  bool exists() const { return std::isfinite(seconds); }
};

// Measures step by step, and predicts from the measurements so far which steps would end too late.
class Measurement {
 public:
  Measurement(backends::Backend& backend, Grid grid, Limit limit)
      : backend_(backend), limit_(std::move(limit)) {
    calibration_.machine = plan::identify_machine(backend);
    calibration_.quick = grid == Grid::quick;
  }

  // Prints a line on stderr for every measured step, and at the end how many were left out. Throws
  // UserError where no step fits on the device.
  plan::Calibration of(const std::vector<CalibrationStep>& steps) {
    int large = 0;
    int late = 0;
    for (size_t i = 0; i < steps.size(); ++i) {
      const plan::Job job = plan::plan_training(steps[i].spec, backend_);
      if (!is_held(job))
        ++large;
      else if (!ends_in_time(steps[i], job))
        ++late;
      else
        time(steps, i);
    }
    if (measured_ == 0)
      base::throw_user_error("no step of the calibration fits into the device's memory");
    if (large > 0)
      base::say("{} of {} steps are left out: the device's memory does not hold them", large,
                steps.size());
    if (late > 0)
      base::say("{} of {} steps are left out: they would not end within {:.0f} s", late,
                steps.size(), limit_.seconds);
    if (calibration_.quick) measure_again(steps);
    if (!calibration_.quick && many(disturbed_, measured_))
      base::say(
          "other programs ran during {} of {} steps, however often they were repeated; calibrate "
          "again when this machine is idle",
          disturbed_, measured_);
    calibration_.busy = is_busy();
    return std::move(calibration_);
  }

 private:
  bool is_held(const plan::Job& job) const {
    constexpr auto kDevice = program::Space::device;
    return job.layout.spaces[static_cast<size_t>(kDevice)].arena_bytes <=
           backend_.capacity_bytes(kDevice);
  }

  // Whether the step is likely to end in time. It runs once more than it is timed, to warm up, and
  // preparing it takes as long as that, or as long as preparing took so far.
  bool ends_in_time(const CalibrationStep& step, const plan::Job& job) const {
    if (!limit_.exists() || measured_ == 0) return true;
    const double run =
        plan::step_seconds(job, step.spec.accumulation, plan::Rates(calibration_.samples),
                           program::full_rows(step.segment_tokens));
    const double timed = std::max(run * step.least_repeats, step.least_seconds);
    return base::seconds_since(start_) + std::max(preparing_ / measured_, run) + run + timed <
           limit_.seconds;
  }

  bool is_busy() const { return has_moved_ || many(disturbed_, measured_); }

  // Measures the first measured step a second time.
  void measure_again(const std::vector<CalibrationStep>& steps) {
    OperationTimes apart;
    const double seconds = time_operations(steps[first_], backend_, apart).least_seconds;
    has_moved_ = seconds > kMoved * first_seconds_;
    if (has_moved_)
      base::say("the first step takes {:.2f} ms now, {:.2f} before", seconds * 1e3,
                first_seconds_ * 1e3);
  }

  void time(const std::vector<CalibrationStep>& steps, size_t index) {
    const CalibrationStep& step = steps[index];
    const auto start = Clock::now();
    const StepTiming timing = time_operations(step, backend_, times_);
    preparing_ +=
        std::max(0.0, base::seconds_since(start) - (1 + timing.repeats) * timing.median_seconds);
    if (measured_ == 0) {
      first_ = index;
      first_seconds_ = timing.least_seconds;
    }
    ++measured_;
    if (timing.is_disturbed) ++disturbed_;
    base::say("{:>3}/{} {:5.1f} s  {}: {:.1f} ms, {} repeats{}", index + 1, steps.size(),
              base::seconds_since(start_), describe(step), timing.median_seconds * 1e3,
              timing.repeats, timing.is_disturbed ? ", next to other programs" : "");
    calibration_.samples = times_.samples();
    calibration_.busy = is_busy();
    if (!limit_.exists()) return;
    plan::Calibration kept = calibration_;
    plan::replace_samples(kept, limit_.links);
    base::write_file_atomically(limit_.path, plan::to_json(kept));
  }

  backends::Backend& backend_;
  const Limit limit_;
  const Clock::time_point start_ = Clock::now();
  OperationTimes times_;
  plan::Calibration calibration_;
  int measured_ = 0;
  int disturbed_ = 0;
  size_t first_ = 0;          // index of the first step that was measured
  double first_seconds_ = 0;  // the seconds of that step's fastest repeat
  bool has_moved_ = false;
  double preparing_ = 0;  // seconds spent on preparing all measured steps
};

// The quick grid always has a limit; the full grid has one where the environment sets it.
Limit limit_of(Grid grid, const fs::path& path, const std::vector<plan::RateSample>& links) {
  const double seconds = grid == Grid::quick ? quick_calibration_seconds() - kAroundMeasuring
                                             : calibration_seconds_wanted().value_or(0);
  if (grid == Grid::full && seconds <= 0) return {};
  return {.seconds = seconds, .path = path, .links = links};
}

fs::path path_for(const formats::Recipe& recipe, Grid grid, const plan::MachineIdentity& machine) {
  if (grid == Grid::quick && recipe.calibration.empty())
    return plan::quick_calibration_path(machine);  // Snug's own file, which may be overwritten
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
  plan::Calibration calibration =
      Measurement(*backend, grid, limit_of(grid, path, links)).of(steps);
  if (grid == Grid::full) add_machine_rates(*backend, recipe, path.parent_path(), calibration);
  plan::replace_samples(calibration, links);
  if (!links.empty())
    base::say("{} samples of links between ranks are kept; 'snug bench links' measures them again",
              links.size());
  const std::string text = plan::to_json(calibration);
  base::write_file_atomically(path, text);
  if (json)
    base::print("{}", text);
  else
    print_summary(calibration, path);
  return 0;
}

}  // namespace snug::bench
