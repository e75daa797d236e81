#include "bench/calibrate.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>

#include "backends/recipe_backend.h"
#include "base/console.h"
#include "base/file.h"
#include "bench/operation_timer.h"
#include "plan/calibration_file.h"

namespace snug::bench {
namespace {

using Clock = std::chrono::steady_clock;

// A step that takes this much longer than its fastest repeat shared the machine with others.
constexpr double kDisturbed = 1.15;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void print_summary(const plan::Calibration& calibration, const std::filesystem::path& path) {
  const plan::Roofline& roofline = plan::Rates(calibration.samples).roofline();
  fmt::print(
      "{}\n{}\n{} samples\nlarge products {:.0f} GFLOP/s, in f32 {:.0f} GFLOP/s; memory "
      "{:.1f} GB/s\nwritten to {}\n",
      calibration.machine.processor, calibration.machine.libraries, calibration.samples.size(),
      roofline.flops_a_second * 1e-9, roofline.f32_flops_a_second * 1e-9,
      roofline.bytes_a_second * 1e-9, path.string());
}

std::vector<CalibrationStep> steps_of(const formats::Recipe& recipe,
                                      const backends::Backend& backend) {
  std::vector<CalibrationStep> steps = calibration_steps(backend, Grid::full);
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

}  // namespace

int calibrate(const formats::Recipe& recipe, bool json) {
  const auto backend = backends::open_backend(recipe);
  const std::filesystem::path path =
      plan::calibration_path(recipe, plan::identify_machine(*backend));
  plan::require_replaceable(path);
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path());
  const plan::Calibration calibration = measure(*backend, steps_of(recipe, *backend));
  const std::string text = plan::to_json(calibration);
  base::write_file_atomically(path, text);
  if (json)
    fmt::print("{}", text);
  else
    print_summary(calibration, path);
  return 0;
}

}  // namespace snug::bench
