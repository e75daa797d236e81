// `snug explain`: prints the programs of a job in their text form, what each pass changed, which
// tensors are live at the peak of the device's arena, and which operations take the time of a step.
// It can also print one program only, either as it runs or as a given pass left it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/console.h"
#include "base/error.h"
#include "cli/explain_options.h"
#include "cli/open_target.h"
#include "cli/planned_data.h"
#include "cli/planned_inference.h"
#include "cli/verbs.h"
#include "plan/job/assembly.h"
#include "plan/job/training_programs.h"
#include "program/text/text.h"
#include "program/work/target.h"

namespace snug::cli {
namespace {

using plan::LiveTensor;

// The live tensors of all layers that have the same name within their layer, such as "layers.*.k".
struct LiveGroup {
  std::string name;
  std::string_view role;
  int64_t count = 0;
  int64_t bytes = 0;
};

// Groups live tensors by name, the largest group first.
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

// A mark for times that mostly rest on something other than samples, printed only where the rates
// come from samples.
std::string_view mark_of(const plan::Estimate& estimate, plan::Basis basis) {
  if (!plan::has_samples(basis)) return "";
  if (2 * estimate.unsampled_seconds > estimate.seconds) return "  (no sample)";
  const double by_others = estimate.unsampled_seconds + estimate.other_algorithm_seconds;
  return 2 * by_others > estimate.seconds ? "  (samples of another algorithm)" : "";
}

void print_step(const plan::PlannedTraining& planned) {
  constexpr size_t kShown = 12;
  const plan::PlanDocument& document = planned.document;
  const std::vector<plan::TimedOperations> times = planned.times();
  base::print("\nslowest operations of a step of {:.2f} ms, by {} rates, {}\n",
              1e3 * document.step_seconds, base::word_of(document.step_basis),
              document.has_data ? "rows of the data" : "rows full");
  base::print("  {:>10}{:>8}{:>7}  {:<12} {}\n", "ms", "share", "count", "program", "operation");
  for (size_t i = 0; i < std::min(kShown, times.size()); ++i) {
    const plan::TimedOperations& group = times[i];
    base::print("  {:>10.3f}{:>6.1f} %{:>7}  {:<12} {}{}\n", 1e3 * group.seconds,
                100 * group.seconds / document.step_seconds, group.count, group.program, group.name,
                mark_of(group, document.step_basis));
  }
}

void print_job(const plan::PlannedJob& planned) {
  const plan::Job& job = planned.job;
  const plan::SpaceReport& peak = planned.document.device.report;
  for (const program::Program& program : job.programs)
    base::print("{}\n", program::to_text(program));
  base::print("{:<14}{:<16}{:>12}{:>10}{:>10}\n", "program", "pass", "operations", "tensors", "ms");
  for (const passes::PassRecord& record : job.passes)
    base::print("{:<14}{:<16}{:>12}{:>10}{:>10.2f}\n", record.program, record.pass,
                record.operations, record.tensors, record.milliseconds);
  base::print("\nlive at the peak of {}: {} operation {}, {}\n",
              plan::readable_bytes(peak.peak_bytes), peak.peak_program, peak.peak_index,
              peak.peak_operation);
  for (const LiveGroup& group : grouped(peak.live))
    base::print("  {:>12}  {:<12} {}{}\n", plan::readable_bytes(group.bytes), group.role,
                group.name, group.count > 1 ? fmt::format(" x{}", group.count) : "");
}

nlohmann::ordered_json job_json(const plan::PlannedJob& planned) {
  const plan::Job& job = planned.job;
  const plan::SpaceReport& peak = planned.document.device.report;
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
  return json;
}

nlohmann::ordered_json step_json(const plan::PlannedTraining& planned) {
  nlohmann::ordered_json json = {
      {"seconds", planned.document.step_seconds},
      {"basis", base::word_of(planned.document.step_basis)},
      {"other_algorithm_seconds", planned.document.step_other_algorithm_seconds},
      {"unsampled_seconds", planned.document.step_unsampled_seconds}};
  for (const plan::TimedOperations& group : planned.times())
    json["operations"].push_back({{"program", group.program},
                                  {"operation", group.name},
                                  {"line", group.line},
                                  {"count", group.count},
                                  {"seconds", group.seconds},
                                  {"other_algorithm_seconds", group.other_algorithm_seconds},
                                  {"unsampled_seconds", group.unsampled_seconds}});
  return json;
}

// Plans the job again and calls the given function with its programs after each pass.
using PlanAgain = std::function<void(passes::AfterPass)>;

// The program that the options ask for: as it runs, or as one pass left it.
program::Program wanted_program(const ExplainOptions& options, const plan::Job& job,
                                const PlanAgain& plan_again) {
  const std::string name(name_of(*options.program));
  const program::Program* program = job.find(*options.program);
  if (program == nullptr) {
    std::vector<std::string_view> names;
    for (const program::Program& each : job.programs) names.push_back(each.name);
    base::throw_user_error("'program' is '{}', which this job of {} does not have; it has {}", name,
                           base::word_of(options.job), fmt::join(names, ", "));
  }
  if (options.after.empty()) return *program;
  std::vector<std::string> passes;
  for (const passes::PassRecord& record : job.passes)
    if (record.program == name) passes.push_back(record.pass);
  if (passes.empty())
    base::throw_user_error(
        "'after' is '{}', but the program {} goes through no pass: it is made as it runs; leave "
        "after out",
        options.after, name);
  if (std::ranges::find(passes, options.after) == passes.end())
    base::throw_user_error("'after' is '{}', which is no pass of {}; those of this job are {}",
                           options.after, name, fmt::join(passes, ", "));
  program::Program after;
  plan_again([&](const passes::PassRecord& record, const program::Program& made) {
    if (record.program == name && record.pass == options.after) after = made;
  });
  return after;
}

int print_program(const program::Program& program, const ExplainOptions& options, bool json) {
  if (!json) {
    base::print("{}", program::to_text(program));
    return 0;
  }
  nlohmann::ordered_json document = {{"name", program.name}};
  if (!options.after.empty()) document["after"] = options.after;
  document["text"] = program::to_text(program);
  base::print("{}\n", document.dump(2));
  return 0;
}

int explain_inference(const Request& request, const ExplainOptions& options) {
  const formats::Recipe recipe = request.recipe();
  recipe.require("model");
  const std::unique_ptr<program::Target> target = open_target(recipe);
  const plan::PlannedInference planned = planned_inference(recipe, *target, options.program);
  if (options.program) {
    const PlanAgain plan_again = [&](passes::AfterPass after_pass) {
      plan::InferenceSpec spec = planned.spec;
      spec.after_pass = std::move(after_pass);
      plan::plan_inference(spec, *target);
    };
    return print_program(wanted_program(options, planned.job, plan_again), options, request.json);
  }
  if (request.json)
    base::print("{}\n", job_json(planned).dump(2));
  else
    print_job(planned);
  return 0;
}

int explain_training(const Request& request, const ExplainOptions& options) {
  const PlanningSession session(request);
  plan::TrainingInputs inputs = session.inputs();
  inputs.verify = true;
  const plan::PlannedTraining planned = plan::assemble_training(inputs);
  if (options.program) {
    const PlanAgain plan_again = [&](passes::AfterPass after_pass) {
      plan::TrainingSpec spec = planned.spec;
      spec.after_pass = std::move(after_pass);
      plan::training_programs(spec, session.target());
    };
    return print_program(wanted_program(options, planned.job, plan_again), options, request.json);
  }
  if (request.json) {
    nlohmann::ordered_json json = job_json(planned);
    json["step"] = step_json(planned);
    base::print("{}\n", json.dump(2));
    return 0;
  }
  print_job(planned);
  print_step(planned);
  return 0;
}

}  // namespace

int explain(const Request& request) {
  Request of_job = request;
  const ExplainOptions options = take_explain_options(of_job);
  return options.job == JobKind::inference ? explain_inference(of_job, options)
                                           : explain_training(of_job, options);
}

}  // namespace snug::cli
