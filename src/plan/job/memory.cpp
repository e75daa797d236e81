#include "plan/job/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>

namespace snug::plan {
namespace {

using program::Lifetime;
using program::Program;
using program::Space;
using program::Stage;
using program::Tensor;

struct Peak {
  size_t program = 0;
  int32_t index = -1;
  int64_t bytes = -1;
};

// The operation at which the live bytes of a program's own tensors in a space are largest.
Peak find_peak(const Program& program, size_t index, Space space) {
  const std::vector<RoleBytes> live = live_bytes(program, space);
  const auto largest = std::ranges::max_element(live, {}, total_of);
  return {index, static_cast<int32_t>(largest - live.begin()), total_of(*largest)};
}

bool is_own(const Tensor& tensor, Space space) {
  return tensor.lifetime == Lifetime::program && !tensor.is_view() && tensor.space == space;
}

// Calls use(tensor) for the tensors that the programs of a stage share, once for each name.
template <typename Use>
void for_each_shared(const Job& job, Stage stage, Space space, const Use& use) {
  std::set<std::string_view> seen;
  for (size_t i = 0; i < job.programs.size(); ++i)
    for (const Tensor& tensor : job.programs[i].tensors) {
      const bool is_shared = tensor.lifetime == Lifetime::run ||
                             (tensor.lifetime == Lifetime::step && job.layout.stages[i] == stage);
      if (is_shared && !tensor.is_view() && tensor.space == space &&
          seen.insert(tensor.name).second)
        use(tensor);
    }
}

void add(SpaceReport& report, const Tensor& tensor) {
  report.by_role[std::string(name_of(tensor.role))] += tensor.bytes();
  report.by_layer[tensor.layer] += tensor.bytes();
  report.live.push_back({tensor.name, tensor.role, tensor.layer, tensor.bytes()});
}

void add_live(const Program& program, int32_t at, Space space, SpaceReport& report) {
  const auto intervals = passes::live_intervals(program);
  for (size_t id = 0; id < program.tensors.size(); ++id) {
    const Tensor& tensor = program.tensors[id];
    if (!is_own(tensor, space)) continue;
    if (intervals[id].first <= at && at <= intervals[id].last) add(report, tensor);
  }
}

std::string describe(const Program& program, int32_t index) {
  if (program.operations.empty()) return "no operation";
  const auto& operation = program.operations[static_cast<size_t>(index)];
  const program::TensorId output = first_output(operation);
  return fmt::format("{} -> {}", name_of(operation.kind()),
                     output == program::kNone ? "" : program.tensor(output).name);
}

// Nothing for a program that is not part of any job.
std::optional<Activity> activity_of(std::string_view program) {
  using program::ProgramName;
  const std::optional<program::ProgramKey> key = program::program_key(program);
  if (!key) return std::nullopt;
  switch (key->name) {
    case ProgramName::load:
    case ProgramName::load_adapter:
    case ProgramName::initialise:
    case ProgramName::prepare:
    case ProgramName::restore:
      return Activity::loading;
    case ProgramName::reference:
    case ProgramName::micro_first:
    case ProgramName::micro_next:
    case ProgramName::micro_last:
    case ProgramName::update:
      return Activity::training;
    case ProgramName::evaluate:
      return Activity::evaluating;
    case ProgramName::save:
    case ProgramName::save_state:
    case ProgramName::average:
      return Activity::saving;
    case ProgramName::prefill:
    case ProgramName::decode:
    case ProgramName::gather:
      return Activity::generating;
  }
  return std::nullopt;
}

// Extends the report by the bytes up to which a program's own tensors reach in each arena.
void extend_to(const Job& job, size_t index, ActivityReport& report) {
  const Program& program = job.programs[index];
  const auto intervals = passes::live_intervals(program);
  for (size_t id = 0; id < program.tensors.size(); ++id) {
    const Tensor& tensor = program.tensors[id];
    if (tensor.lifetime != Lifetime::program || tensor.is_view()) continue;
    if (intervals[id].first > intervals[id].last) continue;
    int64_t& bytes = report.bytes[static_cast<size_t>(tensor.space)];
    bytes = std::max(bytes, job.layout.offsets[index][id] + tensor.bytes());
  }
}

std::vector<ActivityReport> read_activities(const Job& job) {
  std::map<Activity, ActivityReport> activities;
  for (size_t p = 0; p < job.programs.size(); ++p) {
    const std::optional<Activity> activity = activity_of(job.programs[p].name);
    if (!activity) continue;
    const auto [entry, is_new] =
        activities.try_emplace(*activity, ActivityReport{.activity = *activity});
    ActivityReport& report = entry->second;
    for (size_t s = 0; is_new && s < report.bytes.size(); ++s) {
      const passes::SpaceLayout& space = job.layout.spaces[s];
      report.bytes[s] = space.run_bytes + space.of(job.layout.stages[p]).step_bytes;
    }
    extend_to(job, p, report);
  }
  std::vector<ActivityReport> list;
  list.reserve(activities.size());
  for (const auto& [activity, report] : activities) list.push_back(report);
  return list;
}

}  // namespace

int64_t total_of(const RoleBytes& bytes) {
  return std::accumulate(bytes.begin(), bytes.end(), int64_t{0});
}

RoleBytes shared_bytes(const Job& job, Stage stage, Space space) {
  RoleBytes bytes{};
  for_each_shared(job, stage, space, [&](const Tensor& tensor) {
    bytes[static_cast<size_t>(tensor.role)] += tensor.bytes();
  });
  return bytes;
}

std::vector<RoleBytes> live_bytes(const Program& program, Space space) {
  const auto intervals = passes::live_intervals(program);
  std::vector<RoleBytes> change(program.operations.size() + 2, RoleBytes{});
  for (size_t id = 0; id < program.tensors.size(); ++id) {
    const Tensor& tensor = program.tensors[id];
    const auto [first, last] = intervals[id];
    if (!is_own(tensor, space) || first > last) continue;
    const auto role = static_cast<size_t>(tensor.role);
    change[static_cast<size_t>(first)][role] += tensor.bytes();
    change[static_cast<size_t>(last) + 1][role] -= tensor.bytes();
  }
  std::vector<RoleBytes> live(std::max<size_t>(1, program.operations.size()));
  RoleBytes now{};
  for (size_t i = 0; i < live.size(); ++i) {
    for (size_t role = 0; role < now.size(); ++role) now[role] += change[i][role];
    live[i] = now;
  }
  return live;
}

MemoryReport read_memory(const Job& job) {
  MemoryReport memory;
  memory.activities = read_activities(job);
  for (size_t s = 0; s < memory.spaces.size(); ++s) {
    const auto space = static_cast<Space>(s);
    SpaceReport& report = memory.spaces[s];
    report.peak_bytes = job.layout.spaces[s].arena_bytes;
    report.lower_bound_bytes = job.layout.spaces[s].lower_bound_bytes();
    Peak peak;
    for (size_t p = 0; p < job.programs.size(); ++p) {
      Peak own = find_peak(job.programs[p], p, space);
      own.bytes += job.layout.spaces[s].of(job.layout.stages[p]).step_bytes;
      if (own.bytes > peak.bytes) peak = own;
    }
    const Stage stage = job.layout.stages.empty() ? Stage{} : job.layout.stages[peak.program];
    for_each_shared(job, stage, space, [&](const Tensor& tensor) { add(report, tensor); });
    if (peak.index >= 0) {
      const Program& program = job.programs[peak.program];
      report.peak_program = program.name;
      report.peak_index = peak.index;
      report.peak_operation = describe(program, peak.index);
      add_live(program, peak.index, space, report);
    }
    std::stable_sort(report.live.begin(), report.live.end(),
                     [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  }
  return memory;
}

}  // namespace snug::plan
