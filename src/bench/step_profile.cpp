#include "bench/step_profile.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/console.h"
#include "bench/operation_timer.h"
#include "bench/recipe_step.h"
#include "plan/document/profile_lines.h"
#include "plan/time/calibration_file.h"
#include "plan/time/clock.h"

namespace snug::bench {
namespace {

using nlohmann::json;

constexpr int kMinRepeats = 3;
constexpr double kMinStepSeconds = 1.0;

// The planned seconds of a step, by the line of the printed table.
struct Plan {
  std::string basis;
  std::map<std::string, double> seconds;
};

// Counts each program once, as the timer runs them.
Plan plan_of(const formats::Recipe& recipe, const CalibrationStep& timed,
             const backends::Backend& backend) {
  const plan::Job job = plan::plan_training(timed.spec, backend);
  const plan::Rates rates = plan::rates_for(recipe, backend);
  const program::ExpectedBounds expected = program::full_rows(timed.segment_tokens);
  Plan planned{.basis = std::string(base::word_of(rates.basis())), .seconds = {}};
  for (const plan::StepProgram& step : plan::step_programs(job, timed.spec.accumulation)) {
    const program::Program& program = *step.program;
    for (const plan::OperationTime& time : plan::simulate(program, rates, expected).operations) {
      const auto& operation = program.operations[static_cast<size_t>(time.operation)];
      planned.seconds[plan::line_of(plan::rate_key({program, operation}, expected))] +=
          time.seconds;
    }
  }
  return planned;
}

std::vector<plan::ProfileLine> lines_of(const OperationTimes& times, const Plan& planned,
                                        int repeats) {
  std::map<std::string, plan::ProfileLine> by_name;
  for (const OperationTimes::Total& total : times.totals()) {
    const std::string name = plan::line_of(total.key);
    plan::ProfileLine& line = by_name[name];
    line.name = name;
    line.count += static_cast<double>(total.count) / repeats;
    line.seconds += total.seconds / repeats;
    line.planned_seconds = planned.seconds.at(name);
    line.work += total.work / repeats;
    line.unit = total.key.unit;
  }
  std::vector<plan::ProfileLine> lines;
  lines.reserve(by_name.size());
  for (const auto& named : by_name) lines.push_back(named.second);
  plan::sort_lines(lines);
  return lines;
}

}  // namespace

int step(const formats::Recipe& given, bool as_json) {
  RecipeStep timed = recipe_step(given);
  timed.step.least_repeats = kMinRepeats;
  timed.step.least_seconds = kMinStepSeconds;
  OperationTimes times;
  const StepTiming timing = time_operations(timed.step, *timed.backend, times);
  const Plan planned = plan_of(timed.recipe, timed.step, *timed.backend);
  const auto lines = lines_of(times, planned, timing.repeats);
  if (as_json) {
    base::print("{}\n", json{{"libraries", timed.backend->library_versions()},
                             {"step_seconds", timing.median_seconds},
                             {"planned_basis", planned.basis},
                             {"repeats", timing.repeats},
                             {"operations", plan::json_of(lines)}}
                            .dump(2));
    return 0;
  }
  base::print("{}", plan::text_of(lines));
  base::print("a step takes {:.1f} ms, {} repeats; planned by {} rates\n",
              timing.median_seconds * 1e3, timing.repeats, planned.basis);
  return 0;
}

}  // namespace snug::bench
