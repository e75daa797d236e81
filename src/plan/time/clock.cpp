#include "plan/time/clock.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

namespace snug::plan {
namespace {

using program::Operation;
using program::Program;
using program::TensorId;

// When something was done, what the time until then rests on, and whether the host did it next to a
// device.
struct TimePoint : Estimate {
  bool by_host = false;
};

TimePoint later(const TimePoint& a, const TimePoint& b) { return a.seconds >= b.seconds ? a : b; }

// When the bytes of a tensor were last touched.
struct Touched {
  TimePoint written;
  TimePoint read;
};

// Layers repeat: each form and shape is looked up once. Equal shapes may differ in work, as a norm
// of few tensors and one of many do.
class Lookup {
 public:
  Lookup(const Rates& rates, const program::BatchBounds& bounds) : rates_(rates), bounds_(bounds) {}

  Estimate estimate(const program::OperationView& view) {
    Estimate sum;
    for (const program::PricedShare& share : program::priced_shares(view, bounds_))
      sum += estimate(share, view.operation.joined);
    return longer(sum, Estimate::unsampled(memory_seconds(view)));
  }

 private:
  // At least what its memory takes a rank while others of the machine use it too: tensors that last
  // longer than a program lie in no cache when they are used again.
  double memory_seconds(const program::OperationView& view) const {
    const double rate = rates_.roofline().rank_memory_bytes_per_second;
    const Operation& operation = view.operation;
    if (rate <= 0 || operation.channel != program::Channel::compute) return 0;
    double bytes = 0;
    const auto add = [&](const std::vector<TensorId>& ids, int times) {
      for (const TensorId id : ids)
        if (const program::Tensor& tensor = view.program.tensor(id);
            tensor.lifetime != program::Lifetime::program)
          bytes += times * static_cast<double>(tensor.bytes());
    };
    add(operation.reads, 1);
    add(operation.writes, 1);
    add(operation.updates, 2);
    return std::min(bytes, program::cost(view, bounds_).bytes) / rate;
  }

  Estimate estimate(const program::PricedShare& share, bool joined) {
    // What is joined has the key of what is not, and no launch.
    const auto [entry, is_new] = known_.try_emplace({share.key.form, share.key.shape, joined});
    Known& known = entry->second;
    if (is_new) known = {rates_.estimate(share.key, share.cost), share.key.work};
    return known.work > 0 ? known.estimate * (share.key.work / known.work) : known.estimate;
  }

  struct Known {
    Estimate estimate;
    double work = 0;
  };
  const Rates& rates_;
  const program::BatchBounds& bounds_;
  std::map<std::tuple<program::RateForm, std::vector<double>, bool>, Known> known_;
};

}  // namespace

Timeline simulate(const Program& program, const Rates& rates, const program::BatchBounds& bounds) {
  Timeline timeline;
  Lookup lookup(rates, bounds);
  std::map<program::Channel, TimePoint> channel_free;
  std::vector<Touched> touched(program.tensors.size());
  std::vector<TimePoint> arrived(program.tensors.size());  // by what a copy writes
  const auto state = [&](TensorId id) -> Touched& {
    return touched[static_cast<size_t>(program.owner(id))];
  };
  const Estimate join = rates.join();
  const ProcessorSharing& sharing = rates.roofline().sharing;
  for (size_t i = 0; i < program.operations.size(); ++i) {
    const Operation& operation = program.operations[i];
    const bool by_host = operation.channel == program::Channel::host;
    TimePoint start = channel_free[operation.channel];
    const auto after = [&](TimePoint moment) {
      if (moment.seconds > 0 && moment.by_host != by_host) moment += join;
      start = later(start, moment);
    };
    if (program::traits_of(operation).copying == program::Copying::ends) {
      // It waits for its copy alone, whatever the host does with it next to that.
      for (const auto& [from, to] : program::copies_of(operation))
        after(arrived[static_cast<size_t>(to)]);
      start.by_host = by_host;
      channel_free[operation.channel] = start;
      timeline.operations.push_back({{}, static_cast<int32_t>(i), start.seconds});
      continue;
    }
    for (const TensorId id : operation.reads) after(state(id).written);
    const auto after_all = [&](TensorId id) {
      after(state(id).written);
      after(state(id).read);
    };
    std::ranges::for_each(operation.writes, after_all);
    std::ranges::for_each(operation.updates, after_all);
    if (operation.workspace != program::kNone) after_all(operation.workspace);
    const bool begins_copy = program::traits_of(operation).copying == program::Copying::begins;
    if (begins_copy || (operation.on_host && by_host))
      after(channel_free[program::Channel::compute]);

    const Estimate estimate = lookup.estimate({program, operation});
    TimePoint end = start;
    end += estimate;
    end.by_host = by_host;
    for (const TensorId id : operation.reads) state(id).read = later(state(id).read, end);
    for (const TensorId id : operation.writes) state(id).written = end;
    for (const TensorId id : operation.updates) state(id).written = end;
    if (operation.workspace != program::kNone) state(operation.workspace).written = end;
    if (begins_copy)
      for (const auto& [from, to] : program::copies_of(operation))
        arrived[static_cast<size_t>(to)] = end;
    channel_free[operation.channel] = end;
    // It began when all before it had computed, and takes the processors from what comes next.
    if (program::traits_of(operation).category == program::Category::collective &&
        sharing.collectives_compute)
      channel_free[program::Channel::compute] = end;
    timeline.operations.push_back({estimate, static_cast<int32_t>(i), start.seconds});
    static_cast<Estimate&>(timeline) = longer(timeline, end);
  }
  return timeline;
}

namespace {

// A device is given the next micro-batch, or the update, when the host has seen that it began this
// one, and so never sooner than a join after that.
Estimate estimate_of_run(program::ProgramName name, const Timeline& timeline, const Rates& rates) {
  if (name == program::ProgramName::update) return timeline;
  return longer(timeline, rates.join());
}

}  // namespace

Estimate step_estimate(const Job& job, int64_t accumulation, const Rates& rates,
                       const program::ExpectedBounds& expected) {
  Estimate sum;
  for (const StepProgram& step : step_programs(job, accumulation)) {
    const Timeline timeline = simulate(*step.program, rates, expected);
    sum += estimate_of_run(step.name, timeline, rates) * static_cast<double>(step.runs);
  }
  return sum;
}

double step_seconds(const Job& job, int64_t accumulation, const Rates& rates,
                    const program::ExpectedBounds& expected) {
  return step_estimate(job, accumulation, rates, expected).seconds;
}

std::vector<ProgramTime> program_times(const Job& job, int64_t accumulation, const Rates& rates,
                                       const program::ExpectedBounds& expected) {
  std::vector<ProgramTime> times;
  for (const StepProgram& step : step_programs(job, accumulation)) {
    const Timeline timeline = simulate(*step.program, rates, expected);
    ProgramTime time{step.name, estimate_of_run(step.name, timeline, rates).seconds, {}};
    for (const OperationTime& each : timeline.operations)
      time.busy[step.program->operations[static_cast<size_t>(each.operation)].channel] +=
          each.seconds;
    times.push_back(std::move(time));
  }
  return times;
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
