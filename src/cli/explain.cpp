// `snug explain`: the programs of a training job in their text form, what each pass did, what is
// live at the peak of the device's arena, and which operations take the time of a step.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/open_target.h"
#include "cli/planned_data.h"
#include "cli/verbs.h"
#include "plan/calibration_file.h"
#include "plan/clock.h"
#include "plan/document.h"
#include "plan/memory.h"
#include "plan/spec.h"
#include "plan/step_times.h"
#include "program/text.h"
#include "train/row_load.h"

namespace snug::cli {
namespace {

using plan::LiveTensor;

// Tensors of all layers that are called alike: "layers.*.k".
struct LiveGroup {
  std::string name;
  std::string_view role;
  int64_t count = 0;
  int64_t bytes = 0;
};

// Largest first.
std::vector<LiveGroup> grouped(const std::vector<LiveTensor>& live) {
  std::map<std::string, LiveGroup> by_name;
  for (const LiveTensor& tensor : live) {
    LiveGroup& group = by_name[plan::without_layer(tensor.name, tensor.layer)];
    group.role = name_of(tensor.role);
    group.count += 1;
    group.bytes += tensor.bytes;
  }
  std::vector<LiveGroup> groups;
  for (auto& [name, group] : by_name) {
    group.name = name;
    groups.push_back(group);
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [](const LiveGroup& a, const LiveGroup& b) { return a.bytes > b.bytes; });
  return groups;
}

// The step as the clock sees it.
struct Step {
  double seconds = 0;
  std::string basis;                              // of the rates
  std::vector<plan::TimedOperations> operations;  // slowest first
  bool has_data = false;                          // else rows are taken to be full
};

Step step_of(const formats::Recipe& recipe, const plan::TrainingSpec& spec, const plan::Job& job,
             const program::Target& target, const std::optional<program::Load>& of_data) {
  const plan::Rates rates = plan::rates_for(recipe, target);
  const program::Load load = of_data.value_or(plan::full_load(spec.row_tokens));
  return {plan::step_seconds(job, spec.accumulation, rates, load), std::string(rates.basis()),
          plan::step_times(job, spec.accumulation, rates, load), of_data.has_value()};
}

void print_step(const Step& step) {
  constexpr size_t kShown = 12;
  fmt::print("\nslowest operations of a step of {:.2f} ms, by {} rates, {}\n", 1e3 * step.seconds,
             step.basis, step.has_data ? "rows of the data" : "rows full");
  fmt::print("  {:>10}{:>8}{:>7}  {:<12} {}\n", "ms", "share", "count", "program", "operation");
  for (size_t i = 0; i < std::min(kShown, step.operations.size()); ++i) {
    const plan::TimedOperations& group = step.operations[i];
    fmt::print("  {:>10.3f}{:>6.1f} %{:>7}  {:<12} {}\n", 1e3 * group.seconds,
               100 * group.seconds / step.seconds, group.count, group.program, group.name);
  }
}

void print_text(const plan::Job& job, const plan::SpaceReport& peak) {
  for (const program::Program& program : job.programs)
    fmt::print("{}\n", program::to_text(program));
  fmt::print("{:<14}{:<16}{:>12}{:>10}{:>10}\n", "program", "pass", "operations", "tensors", "ms");
  for (const passes::PassRecord& record : job.passes)
    fmt::print("{:<14}{:<16}{:>12}{:>10}{:>10.2f}\n", record.program, record.pass,
               record.operations, record.tensors, record.milliseconds);
  fmt::print("\nlive at the peak of {}: {} operation {}, {}\n",
             plan::readable_bytes(peak.peak_bytes), peak.peak_program, peak.peak_index,
             peak.peak_operation);
  for (const LiveGroup& group : grouped(peak.live))
    fmt::print("  {:>12}  {:<12} {}{}\n", plan::readable_bytes(group.bytes), group.role, group.name,
               group.count > 1 ? fmt::format(" x{}", group.count) : "");
}

void print_json(const plan::Job& job, const plan::SpaceReport& peak, const Step& step) {
  nlohmann::ordered_json json;
  for (const program::Program& program : job.programs)
    json["programs"].push_back({{"name", program.name}, {"text", program::to_text(program)}});
  for (const passes::PassRecord& record : job.passes)
    json["passes"].push_back({{"program", record.program},
                              {"pass", record.pass},
                              {"operations", record.operations},
                              {"tensors", record.tensors},
                              {"milliseconds", record.milliseconds}});
  json["peak"] = {{"bytes", peak.peak_bytes},
                  {"program", peak.peak_program},
                  {"index", peak.peak_index},
                  {"operation", peak.peak_operation}};
  for (const LiveTensor& tensor : peak.live)
    json["peak"]["live"].push_back({{"name", tensor.name},
                                    {"role", name_of(tensor.role)},
                                    {"layer", tensor.layer},
                                    {"bytes", tensor.bytes}});
  json["step"] = {{"seconds", step.seconds}, {"basis", step.basis}};
  for (const plan::TimedOperations& group : step.operations)
    json["step"]["operations"].push_back({{"program", group.program},
                                          {"operation", group.name},
                                          {"line", group.line},
                                          {"count", group.count},
                                          {"seconds", group.seconds}});
  fmt::print("{}\n", json.dump(2));
}

}  // namespace

int explain(const Request& request) {
  formats::Recipe recipe = request.recipe(kPlannedWithout);
  recipe.require("model");
  const models::ModelSource model = models::find_model(recipe.model);
  recipe = plan::resolve(std::move(recipe), model.config);
  const auto target = open_target(recipe);
  plan::TrainingSpec spec = plan::training_spec(recipe, model.config, *target);
  const std::optional<train::RunData> data = read_planned_data(recipe, model, spec);
  spec.verify = true;
  const plan::Job job = plan::plan_training(spec, *target);
  const plan::MemoryReport memory = plan::read_memory(job);
  std::optional<program::Load> load;
  if (data) load = train::load_of(data->training->rows);
  const Step step = step_of(recipe, spec, job, *target, load);
  if (request.json) {
    print_json(job, memory.device(), step);
    return 0;
  }
  print_text(job, memory.device());
  print_step(step);
  return 0;
}

}  // namespace snug::cli
