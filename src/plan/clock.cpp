#include "plan/clock.h"

#include <algorithm>
#include <map>
#include <utility>

namespace snug::plan {
namespace {

using program::Operation;
using program::Program;
using program::TensorId;

// When the bytes of a tensor were last touched.
struct Touched {
  double written = 0;
  double read = 0;
};

// Layers repeat: each name and shape is looked up once. Equal shapes may differ in work, as a norm
// of few tensors and one of many do.
class Lookup {
 public:
  Lookup(const Rates& rates, const program::BatchBounds& bounds) : rates_(rates), bounds_(bounds) {}

  double seconds(const program::OperationView& view) {
    const RateKey key = rate_key(view, bounds_);
    // What is joined has the key of what is not, and no launch.
    const std::string name = key.name + (view.operation.joined ? " joined" : "");
    const auto [entry, is_new] = known_.try_emplace({name, key.shape});
    Known& known = entry->second;
    if (is_new) known = {rates_.seconds(key, program::cost(view, bounds_)), key.work};
    return known.work > 0 ? known.seconds * key.work / known.work : known.seconds;
  }

 private:
  struct Known {
    double seconds = 0;
    double work = 0;
  };
  const Rates& rates_;
  const program::BatchBounds& bounds_;
  std::map<std::pair<std::string, std::vector<double>>, Known> known_;
};

}  // namespace

Timeline simulate(const Program& program, const Rates& rates, const program::BatchBounds& bounds) {
  Timeline timeline;
  Lookup lookup(rates, bounds);
  std::map<program::Channel, double> channel_free;
  std::vector<Touched> touched(program.tensors.size());
  std::vector<double> arrived(program.tensors.size());  // by what a copy writes
  const auto state = [&](TensorId id) -> Touched& {
    return touched[static_cast<size_t>(program.owner(id))];
  };
  for (size_t i = 0; i < program.operations.size(); ++i) {
    const Operation& operation = program.operations[i];
    double start = channel_free[operation.channel];
    if (program::traits_of(operation).ends_copy) {
      // It waits for its copy alone, whatever the host does with it next to that.
      for (const auto& [from, to] : program::copies_of(operation))
        start = std::max(start, arrived[static_cast<size_t>(to)]);
      channel_free[operation.channel] = start;
      timeline.operations.push_back({static_cast<int32_t>(i), start, 0.0});
      continue;
    }
    for (const TensorId id : operation.reads) start = std::max(start, state(id).written);
    const auto after_all = [&](TensorId id) {
      start = std::max({start, state(id).written, state(id).read});
    };
    std::ranges::for_each(operation.writes, after_all);
    std::ranges::for_each(operation.updates, after_all);
    if (operation.workspace != program::kNone) after_all(operation.workspace);
    const bool on_host_channel = operation.on_host && operation.channel == program::Channel::host;
    if (program::traits_of(operation).begins_copy || on_host_channel)
      start = std::max(start, channel_free[program::Channel::compute]);

    const double seconds = lookup.seconds({program, operation});
    const double end = start + seconds;
    for (const TensorId id : operation.reads) state(id).read = std::max(state(id).read, end);
    for (const TensorId id : operation.writes) state(id).written = end;
    for (const TensorId id : operation.updates) state(id).written = end;
    if (operation.workspace != program::kNone) state(operation.workspace).written = end;
    if (program::traits_of(operation).begins_copy)
      for (const auto& [from, to] : program::copies_of(operation))
        arrived[static_cast<size_t>(to)] = end;
    channel_free[operation.channel] = end;
    timeline.operations.push_back({static_cast<int32_t>(i), start, seconds});
    timeline.seconds = std::max(timeline.seconds, end);
  }
  return timeline;
}

double step_seconds(const Job& job, int64_t accumulation, const Rates& rates,
                    const program::ExpectedBounds& expected) {
  double sum = 0;
  for (const StepProgram& step : step_programs(job, accumulation))
    sum += static_cast<double>(step.runs) * simulate(*step.program, rates, expected).seconds;
  return sum;
}

std::map<program::Channel, double> busy_seconds(const Job& job, int64_t accumulation,
                                                const Rates& rates,
                                                const program::ExpectedBounds& expected) {
  std::map<program::Channel, double> busy;
  for (const StepProgram& step : step_programs(job, accumulation)) {
    const Timeline timeline = simulate(*step.program, rates, expected);
    for (const OperationTime& time : timeline.operations)
      busy[step.program->operations[static_cast<size_t>(time.operation)].channel] +=
          time.seconds * static_cast<double>(step.runs);
  }
  return busy;
}

namespace {

std::vector<const Program*> programs_that_load(const Job& job) {
  using program::ProgramName;
  std::vector<const Program*> programs;
  for (const ProgramName name : {ProgramName::load, ProgramName::load_adapter})
    if (const Program* program = job.find(name); program != nullptr) programs.push_back(program);
  return programs;
}

}  // namespace

double load_seconds(const Job& job, const Rates& rates) {
  double sum = 0;
  for (const Program* program : programs_that_load(job))
    sum += simulate(*program, rates, {}).seconds;
  return sum;
}

Basis load_basis(const Job& job, const Rates& rates) {
  for (const Program* program : programs_that_load(job))
    for (const Operation& operation : program->operations)
      if (operation.channel == program::Channel::storage) return rates.storage_basis();
  return rates.basis();
}

}  // namespace snug::plan
