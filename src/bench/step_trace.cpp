#include "bench/step_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/console.h"
#include "bench/operation_timer.h"
#include "bench/recipe_step.h"
#include "plan/time/calibration_file.h"
#include "plan/time/clock.h"
#include "program/kinds/kind.h"
#include "program/work/decisions.h"
#include "runtime/execution/trace_check.h"

namespace snug::bench {
namespace {

using nlohmann::ordered_json;
using program::Operation;
using program::Program;

ordered_json names_of(const Program& program, const Operation& operation) {
  ordered_json names = ordered_json::array();
  for (const auto* ids : {&operation.writes, &operation.updates})
    for (const program::TensorId id : *ids) names.push_back(program.tensor(id).name);
  return names;
}

// Whole numbers, since the extents are those of a real batch.
ordered_json json_of(const program::Extent& extent) {
  ordered_json numbers{{"rows", std::llround(extent.rows)}};
  if (extent.pairs == 0) return numbers;
  numbers["keys"] = std::llround(extent.keys);
  numbers["pairs"] = std::llround(extent.pairs);
  return numbers;
}

struct Row {
  const Program& program;
  size_t index;
  const backends::Trace& trace;
  double seconds;          // measured for the launch, whose first operation this is
  double planned_seconds;  // planned for the same launch
};

// The planned seconds of all operations in one launch.
double planned_seconds(const plan::Timeline& timeline, const program::Together& launch) {
  double seconds = 0;
  for (size_t i = launch.first; i <= launch.last; ++i) seconds += timeline.operations[i].seconds;
  return seconds;
}

// The times of a launch are printed once, with its first operation. The others refer to that one.
void put_times(const Row& row, ordered_json& line) {
  const program::Together launch = done_with(row.program, row.index);
  if (launch.first != row.index) {
    line["launched_with"] = launch.first;
    return;
  }
  if (launch.last > launch.first) line["operations_in_launch"] = launch.last - launch.first + 1;
  line["seconds"] = row.seconds;
  line["planned_seconds"] = row.planned_seconds;
}

// Whether this decision was chosen within a class that the trace also names.
bool is_choice(const backends::Trace& trace, const std::pair<std::string_view, int64_t>& way) {
  return std::ranges::any_of(trace.decisions, [&](const auto& decision) {
    return decision.first == way.first &&
           program::is_of_class(trace.kind, way.first, decision.second, way.second);
  });
}

ordered_json json_of(const Row& row, const std::vector<std::string>& differences) {
  ordered_json decisions = ordered_json::object();
  for (const auto& [name, value] : row.trace.decisions) {
    const std::string key =
        std::string(name) + (is_choice(row.trace, {name, value}) ? "_chosen" : "");
    const std::string text = program::decision_text(row.trace.kind, name, value);
    if (text == std::to_string(value))
      decisions[key] = value;
    else
      decisions[key] = text;
  }
  ordered_json line{{"program", row.program.name},
                    {"operation", row.index},
                    {"kind", program::name_of(row.trace.kind)},
                    {"writes", names_of(row.program, row.program.operations[row.index])},
                    {"channel", program::name_of(row.trace.channel)},
                    {"joined", row.trace.joined},
                    {"launches", row.trace.launches},
                    {"decisions", decisions}};
  if (row.trace.extent) {
    line["extent"] = json_of(*row.trace.extent);
    line["by_capacity"] = row.trace.by_capacity;
  }
  if (!row.trace.pieces.empty()) line["pieces"] = row.trace.pieces;
  line["bytes"] = row.trace.bytes;
  put_times(row, line);
  if (!differences.empty()) line["differences"] = differences;
  return line;
}

}  // namespace

int trace(const formats::Recipe& given) {
  const RecipeStep traced = recipe_step(given);
  FilledStep filled(traced.step, *traced.backend);
  const plan::Rates rates = plan::rates_for(traced.recipe, *traced.backend);
  bool is_as_planned = true;
  for (const plan::StepProgram& each :
       plan::step_programs(filled.job(), traced.step.spec.accumulation)) {
    const Program& program = *each.program;
    const program::BatchBounds& bounds = filled.executor().bounds(each.name);
    filled.executor().run(each.name);
    const std::vector<backends::Trace> traces = filled.executor().run_traced(each.name);
    const std::vector<double> seconds = launch_seconds(each, filled.executor());
    const plan::Timeline timeline = plan::simulate(program, rates, bounds);
    for (size_t i = 0; i < traces.size(); ++i) {
      const auto differences = runtime::differences({program, bounds}, i, traces[i]);
      is_as_planned = is_as_planned && differences.empty();
      const Row row{program, i, traces[i], seconds[i],
                    planned_seconds(timeline, done_with(program, i))};
      base::print("{}\n", json_of(row, differences).dump());
    }
  }
  return is_as_planned ? 0 : 1;
}

}  // namespace snug::bench
