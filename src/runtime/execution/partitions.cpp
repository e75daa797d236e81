#include "runtime/execution/partitions.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "program/ir/operands.h"
#include "program/kinds/kind.h"

namespace snug::runtime {
namespace {

using program::Operation;
using program::Program;

// The indices of the two operations that begin and end one copy.
struct Halves {
  size_t begins;
  size_t ends;
};

std::vector<Halves> halves_of(const Program& program) {
  std::vector<Halves> copies;
  std::map<program::TensorId, size_t> under_way;  // copies in progress, by destination tensor
  for (size_t i = 0; i < program.operations.size(); ++i) {
    const Operation& operation = program.operations[i];
    const program::Traits& traits = program::traits_of(operation);
    if (traits.copying == program::Copying::begins)
      for (const auto& [from, to] : program::copies_of(operation)) under_way[to] = i;
    if (traits.copying != program::Copying::ends) continue;
    // One on the channel `host` is followed by one that ends the copy.
    for (const auto& [from, to] : program::copies_of(operation)) {
      const auto begun = under_way.find(to);
      SNUG_CHECK(begun != under_way.end(), "operation {} of {} awaits a copy that was not begun", i,
                 program.name);
      if (copies.empty() || copies.back().begins != begun->second || copies.back().ends != i)
        copies.push_back({begun->second, i});
      if (ends_copy(operation)) under_way.erase(begun);
    }
  }
  SNUG_CHECK(under_way.empty(), "{} copies are under way at the end of {}", under_way.size(),
             program.name);
  return copies;
}

// For each operation, whether the host queues it in every run.
std::vector<bool> queued_each_run(const Program& program, const TakesExtent& takes_extent) {
  std::vector<bool> each_run;
  for (const Operation& operation : program.operations) {
    const program::Traits& traits = program::traits_of(operation);
    const bool is_of_host = operation.on_host || operation.channel == program::Channel::host;
    each_run.push_back(traits.copying == program::Copying::with_host ||
                       traits.category == program::Category::collective || is_of_host ||
                       (traits.has_extent() && takes_extent({program, operation})));
  }
  const std::vector<Halves> copies = halves_of(program);
  const auto divides = [&](const Halves& copy) {
    return std::any_of(each_run.begin() + static_cast<long>(copy.begins),
                       each_run.begin() + static_cast<long>(copy.ends) + 1,
                       [](bool is) { return is; });
  };
  // Taking the halves of a copy out of a recording divides it, which may separate the halves of
  // another copy.
  for (bool changed = true; changed;) {
    changed = false;
    for (const Halves& copy : copies) {
      if ((each_run[copy.begins] && each_run[copy.ends]) || !divides(copy)) continue;
      each_run[copy.begins] = each_run[copy.ends] = true;
      changed = true;
    }
  }
  return each_run;
}

}  // namespace

std::vector<Partition> partitions_of(const Program& program, const TakesExtent& takes_extent) {
  const std::vector<bool> each_run = queued_each_run(program, takes_extent);
  std::vector<Partition> partitions;
  for (size_t i = 0; i < each_run.size(); ++i) {
    if (partitions.empty() || partitions.back().is_recordable == each_run[i])
      partitions.push_back({i, i, !each_run[i]});
    partitions.back().end = i + 1;
  }
  return partitions;
}

}  // namespace snug::runtime
