#include "plan/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace snug::plan {
namespace {

using program::Lifetime;
using program::Program;
using program::Space;
using program::Tensor;

struct Peak {
  size_t program = 0;
  int32_t index = -1;
  int64_t bytes = -1;
};

// The operation at which a program's live bytes in a space are largest.
Peak find_peak(const Program& program, size_t index, Space space) {
  const auto intervals = passes::live_intervals(program);
  std::vector<int64_t> change(program.operations.size() + 2, 0);
  for (size_t id = 0; id < program.tensors.size(); ++id) {
    const Tensor& tensor = program.tensors[id];
    const auto [first, last] = intervals[id];
    if (tensor.lifetime != Lifetime::program || tensor.is_view() || tensor.space != space) continue;
    if (first > last) continue;
    change[static_cast<size_t>(first)] += tensor.bytes();
    change[static_cast<size_t>(last) + 1] -= tensor.bytes();
  }
  Peak peak{index, 0, 0};
  int64_t live = 0;
  for (size_t i = 0; i < std::max<size_t>(1, program.operations.size()); ++i) {
    live += change[i];
    if (live > peak.bytes) peak = {index, static_cast<int32_t>(i), live};
  }
  return peak;
}

void add(SpaceReport& report, const Tensor& tensor) {
  report.by_role[std::string(name_of(tensor.role))] += tensor.bytes();
  report.by_layer[tensor.layer] += tensor.bytes();
  report.live.push_back({tensor.name, tensor.role, tensor.layer, tensor.bytes()});
}

void add_shared(const Job& job, Space space, SpaceReport& report) {
  std::set<std::string_view> seen;
  for (const Program& program : job.programs)
    for (const Tensor& tensor : program.tensors)
      if (tensor.lifetime != Lifetime::program && !tensor.is_view() && tensor.space == space &&
          seen.insert(tensor.name).second)
        add(report, tensor);
}

void add_live(const Program& program, int32_t at, Space space, SpaceReport& report) {
  const auto intervals = passes::live_intervals(program);
  for (size_t id = 0; id < program.tensors.size(); ++id) {
    const Tensor& tensor = program.tensors[id];
    if (tensor.lifetime != Lifetime::program || tensor.is_view() || tensor.space != space) continue;
    if (intervals[id].first <= at && at <= intervals[id].last) add(report, tensor);
  }
}

std::string describe(const Program& program, int32_t index) {
  if (program.operations.empty()) return "no operation";
  const auto& operation = program.operations[static_cast<size_t>(index)];
  const auto& outputs = operation.writes.empty() ? operation.updates : operation.writes;
  const std::string output = outputs.empty() ? "" : program.tensor(outputs[0]).name;
  return fmt::format("{} -> {}", name_of(operation.kind()), output);
}

}  // namespace

MemoryReport read_memory(const Job& job) {
  MemoryReport memory;
  for (size_t s = 0; s < memory.spaces.size(); ++s) {
    const auto space = static_cast<Space>(s);
    SpaceReport& report = memory.spaces[s];
    report.peak_bytes = job.layout.spaces[s].arena_bytes;
    report.lower_bound_bytes = job.layout.spaces[s].lower_bound_bytes();
    Peak peak;
    for (size_t p = 0; p < job.programs.size(); ++p)
      if (const Peak own = find_peak(job.programs[p], p, space); own.bytes > peak.bytes) peak = own;
    add_shared(job, space, report);
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
