#include "plan/time/step_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "plan/time/clock.h"

namespace snug::plan {
namespace {

std::string name_in_all_layers(const program::Program& program,
                               const program::Operation& operation) {
  const program::TensorId id = first_output(operation);
  if (id == program::kNone) return std::string(name_of(operation.kind()));
  const program::Tensor& output = program.tensor(id);
  return fmt::format("{} -> {}", name_of(operation.kind()),
                     without_layer(output.name, output.layer));
}

}  // namespace

std::vector<TimedOperations> step_times(const Job& job, int64_t accumulation, const Rates& rates,
                                        const program::ExpectedBounds& expected) {
  std::vector<TimedOperations> groups;
  for (const StepProgram& step : step_programs(job, accumulation)) {
    const program::Program& program = *step.program;
    std::map<std::pair<std::string, std::string>, TimedOperations> by_name;
    for (const OperationTime& time : simulate(program, rates, expected).operations) {
      const auto& operation = program.operations[static_cast<size_t>(time.operation)];
      if (operation.channel != program::Channel::compute) continue;
      const std::string line = line_of(rate_key({program, operation}, expected));
      TimedOperations& group = by_name[{name_in_all_layers(program, operation), line}];
      group.count += step.runs;
      group += time * static_cast<double>(step.runs);
    }
    for (auto& [names, group] : by_name) {
      group.program = program.name;
      std::tie(group.name, group.line) = names;
      groups.push_back(std::move(group));
    }
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
  return groups;
}

std::string without_layer(std::string_view name, int32_t layer) {
  std::string text(name);
  if (layer < 0) return text;
  const std::string number = fmt::format(".{}.", layer);
  if (const size_t at = text.find(number); at != std::string::npos)
    text.replace(at, number.size(), ".*.");
  return text;
}

}  // namespace snug::plan
