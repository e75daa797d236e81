#include "bench/step_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/operation_timer.h"
#include "bench/recipe_step.h"
#include "plan/calibration_file.h"
#include "plan/clock.h"

namespace snug::bench {
namespace {

using nlohmann::json;

constexpr int kMinRepeats = 3;
constexpr double kMinSeconds = 3.0;

// Operations that are shown as one line, of one step.
struct Line {
  double count = 0;
  double seconds = 0;
  double planned_seconds = 0;  // what the clock says of the same operations
  double work = 0;
  plan::Work unit = plan::Work::bytes;
};

// What the clock says of a step, by line.
struct Plan {
  std::string basis;
  std::map<std::string, double> seconds;
};

// Each program once, as the timer runs them.
Plan plan_of(const formats::Recipe& recipe, const CalibrationStep& timed,
             const backends::Backend& backend) {
  const plan::Job job = plan::plan_training(timed.spec, backend);
  const plan::Rates rates = plan::rates_for(recipe, backend);
  const program::Load load = full_load(timed);
  Plan planned{.basis = std::string(rates.basis()), .seconds = {}};
  for (const plan::StepProgram& step : plan::step_programs(job, timed.spec.accumulation)) {
    const program::Program& program = *step.program;
    for (const plan::OperationTime& time : plan::simulate(program, rates, load).operations) {
      const auto& operation = program.operations[static_cast<size_t>(time.operation)];
      planned.seconds[plan::line_of(plan::rate_key({program, operation}, load))] += time.seconds;
    }
  }
  return planned;
}

std::vector<std::pair<std::string, Line>> lines_of(const OperationTimes& times, const Plan& planned,
                                                   int repeats) {
  std::map<std::string, Line> by_name;
  for (const OperationTimes::Total& total : times.totals()) {
    Line& line = by_name[plan::line_of(total.key)];
    line.count += static_cast<double>(total.count) / repeats;
    line.seconds += total.seconds / repeats;
    line.work += total.work / repeats;
    line.unit = total.key.unit;
  }
  for (auto& [name, line] : by_name) line.planned_seconds = planned.seconds.at(name);
  std::vector<std::pair<std::string, Line>> lines(by_name.begin(), by_name.end());
  std::ranges::sort(
      lines, [](const auto& a, const auto& b) { return a.second.seconds > b.second.seconds; });
  return lines;
}

void print_lines(const std::vector<std::pair<std::string, Line>>& lines) {
  double all_seconds = 0;
  for (const auto& [name, line] : lines) all_seconds += line.seconds;
  for (const auto& [name, line] : lines)
    fmt::print("{:5.1f} % {:9.3f} ms, planned {:9.3f} {:5.0f} x  {:7.1f} {}  {}\n",
               100 * line.seconds / all_seconds, line.seconds * 1e3, line.planned_seconds * 1e3,
               line.count, line.work / line.seconds * 1e-9,
               line.unit == plan::Work::flops ? "GFLOP/s" : "GB/s   ", name);
}

json json_of(const std::vector<std::pair<std::string, Line>>& lines) {
  json list = json::array();
  for (const auto& [name, line] : lines)
    list.push_back({{"name", name},
                    {"count", line.count},
                    {"seconds", line.seconds},
                    {"planned_seconds", line.planned_seconds},
                    {"work", line.work},
                    {"unit", base::word_of(line.unit)}});
  return list;
}

}  // namespace

int step(const formats::Recipe& given, bool as_json) {
  RecipeStep timed = recipe_step(given);
  timed.step.least_repeats = kMinRepeats;
  timed.step.least_seconds = kMinSeconds;
  OperationTimes times;
  const StepTiming timing = time_operations(timed.step, *timed.backend, times);
  const Plan planned = plan_of(timed.recipe, timed.step, *timed.backend);
  const auto lines = lines_of(times, planned, timing.repeats);
  if (as_json) {
    fmt::print("{}\n", json{{"libraries", timed.backend->library_versions()},
                            {"step_seconds", timing.median_seconds},
                            {"planned_basis", planned.basis},
                            {"repeats", timing.repeats},
                            {"operations", json_of(lines)}}
                           .dump(2));
    return 0;
  }
  print_lines(lines);
  fmt::print("a step takes {:.1f} ms, {} repeats; planned by {} rates\n",
             timing.median_seconds * 1e3, timing.repeats, planned.basis);
  return 0;
}

}  // namespace snug::bench
