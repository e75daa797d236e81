#include "bench/link_rates.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <numeric>
#include <sstream>
#include <string>
#include <utility>

#include "base/median.h"
#include "base/seconds_since.h"
#include "bench/memory_update.h"
#include "passes/sharding/rank_operations.h"
#include "program/ir/builder.h"
#include "program/kinds/kind.h"
#include "program/kinds/transfer/collective.h"

namespace snug::bench {
namespace {

using Clock = std::chrono::steady_clock;
using program::AllGather;
using program::AllReduce;
using program::DType;
using program::Operation;
using program::Program;
using program::RankGroup;
using program::ReduceScatter;
using program::TensorId;

// The number of tensors in a collective: about as many as a layer has.
constexpr int64_t kTensors = 8;
constexpr int kMinCollectiveRuns = 9;
constexpr int kMaxCollectiveRuns = 65;
// More than kMinCollectiveRuns runs are made while all together take no longer than this. A rank
// that has to wait for its processor makes a collective of any size take milliseconds instead of
// microseconds.
constexpr double kMoreRunsSeconds = 0.05;

// 256 MiB of weights, gradients and state on each rank, more than a rank's share of any cache.
constexpr int64_t kRankElements = int64_t{16} << 20;

enum class Collective : uint8_t { all_gather, reduce_scatter, all_reduce };

// The elements in a rank's part of each tensor, such that the rank sends about `bytes`.
int64_t part_elements(Collective kind, int ranks, int64_t tensors, int64_t bytes) {
  const int64_t rounds = kind == Collective::all_reduce ? 2 : 1;
  return std::max<int64_t>(1, bytes / (rounds * (ranks - 1) * tensors * int64_t{sizeof(float)}));
}

// One collective with its await, and this rank's memory for it.
class OneCollective {
 public:
  OneCollective(Collective kind, int64_t bytes, int ranks, int nodes, backends::Backend& backend)
      : backend_(backend) {
    const int64_t tensors = bytes < kTensors * ranks * 64 ? 1 : kTensors;
    const int64_t part = part_elements(kind, ranks, tensors, bytes);
    Operation operation = operation_of(kind, ranks, nodes);
    for (int64_t i = 0; i < tensors; ++i) add_tensors(kind, part, ranks, operation);
    program_ = builder_.take();
    passes::RankOperations adder(program_, backend);
    Operation await = adder.begin(std::move(operation), {});
    program_.operations.push_back(std::move(await));
    adder.count_launches();
    for (const program::Tensor& tensor : program_.tensors)
      memory_.push_back(backend.allocate(program::Space::device, tensor.bytes()));
    for (const Operation& each : program_.operations) {
      const program::OperationView view{program_, each};
      if (!backend.runs(view))
        base::throw_user_error("backend {} has no collectives, so there are no links to measure",
                               backend.name());
      prepared_.push_back(backend.prepare(view));
    }
  }

  plan::RateKey key() const { return plan::rate_key({program_, program_.operations.front()}, {}); }

  // The seconds from its begin to the end of its await, on this rank.
  double run() {
    const auto start = Clock::now();
    for (size_t i = 0; i < program_.operations.size(); ++i) run(i);
    backend_.synchronise();
    return base::seconds_since(start);
  }

 private:
  static Operation operation_of(Collective kind, int32_t ranks, int32_t nodes) {
    constexpr auto kAll = RankGroup::all;
    Operation operation;
    if (kind == Collective::all_gather)
      operation.attributes = AllGather{.group = kAll, .ranks = ranks, .nodes = nodes};
    else if (kind == Collective::reduce_scatter)
      operation.attributes = ReduceScatter{.group = kAll, .ranks = ranks, .nodes = nodes};
    else
      operation.attributes = AllReduce{.group = kAll, .ranks = ranks, .nodes = nodes};
    return operation;
  }

  void add_tensors(Collective kind, int64_t part, int ranks, Operation& operation) {
    const size_t index = operation.updates.size() + operation.writes.size();
    const auto tensor = [&](const char* what, int64_t elements) {
      return builder_.activation(fmt::format("{}.{}", what, index), {elements}, DType::f32);
    };
    const TensorId whole = tensor("whole", part * ranks);
    if (kind == Collective::all_reduce) return operation.updates.push_back(whole);
    const TensorId shard = tensor("shard", part);
    const bool gathers = kind == Collective::all_gather;
    operation.reads.push_back(gathers ? shard : whole);
    operation.writes.push_back(gathers ? whole : shard);
  }

  backends::Buffer buffer(TensorId id) const {
    const program::Tensor& tensor = program_.tensor(id);
    return {memory_[static_cast<size_t>(id)]->data(), tensor.dtype, tensor.shape,
            program::dense_strides(tensor.shape)};
  }

  std::vector<backends::Buffer> buffers(const std::vector<TensorId>& ids) const {
    std::vector<backends::Buffer> result;
    result.reserve(ids.size());
    for (const TensorId id : ids) result.push_back(buffer(id));
    return result;
  }

  void run(size_t index) {
    const Operation& operation = program_.operations[index];
    const program::OperationView view{program_, operation};
    const auto reads = buffers(operation.reads);
    const auto writes = buffers(operation.writes);
    const auto updates = buffers(operation.updates);
    backends::Invocation invocation{.attributes = &operation.attributes,
                                    .reads = reads,
                                    .writes = writes,
                                    .updates = updates,
                                    .workspace = {},
                                    .prepared = prepared_[index].get(),
                                    .channel = operation.channel,
                                    .view = &view};
    if (operation.workspace != program::kNone) invocation.workspace = buffer(operation.workspace);
    backend_.run(invocation);
  }

  backends::Backend& backend_;
  program::Builder builder_{"links"};
  Program program_;
  std::vector<std::unique_ptr<backends::Arena>> memory_;
  std::vector<std::unique_ptr<backends::Prepared>> prepared_;
};

// For each run, the time of the slowest rank.
std::vector<double> slowest(const std::vector<double>& own, comm::Communicator& all) {
  std::vector<double> seconds(own.size());
  for (const std::string& text : all.all_gather_text(fmt::format("{}", fmt::join(own, " ")))) {
    std::istringstream stream(text);
    for (double& most : seconds) {
      double value = 0;
      stream >> value;
      most = std::max(most, value);
    }
  }
  return seconds;
}

// The times of `runs` runs, the same on all ranks. `run` returns the seconds that it took.
std::vector<double> times_of(const std::function<double()>& run, int runs,
                             comm::Communicator& all) {
  std::vector<double> own;
  for (int i = 0; i < runs; ++i) {
    all.barrier();
    own.push_back(run());
  }
  return slowest(own, all);
}

plan::RateSample measure(OneCollective& collective, comm::Communicator& all) {
  const plan::RateKey key = collective.key();
  const auto run = [&] { return collective.run(); };
  run();
  std::vector<double> seconds = times_of(run, kMinCollectiveRuns, all);
  const double sum = std::accumulate(seconds.begin(), seconds.end(), 0.0);
  const double more =
      std::min<double>(kMaxCollectiveRuns, kMinCollectiveRuns * kMoreRunsSeconds / sum) -
      kMinCollectiveRuns;
  if (more >= 1)
    for (const double each : times_of(run, static_cast<int>(more), all)) seconds.push_back(each);
  return {.name = key.form.name(),
          .shape = key.shape,
          .unit = key.unit,
          .work = key.work,
          .seconds = base::median(std::move(seconds))};
}

}  // namespace

std::vector<plan::RateSample> link_rates(backends::Backend& backend, comm::Communicator& all,
                                         const LinkGrid& grid) {
  SNUG_CHECK(all.size() > 1, "links of one rank alone");
  std::vector<plan::RateSample> samples;
  for (const auto kind :
       {Collective::all_gather, Collective::reduce_scatter, Collective::all_reduce})
    for (int64_t bytes = grid.least_bytes; bytes <= grid.most_bytes; bytes *= 2) {
      OneCollective collective(kind, bytes, all.size(), grid.nodes, backend);
      plan::RateSample sample = measure(collective, all);
      // With many ranks, several small sizes round to the same one.
      const bool is_new = samples.empty() || samples.back().name != sample.name ||
                          samples.back().shape != sample.shape;
      if (is_new) samples.push_back(std::move(sample));
    }
  return samples;
}

plan::RateSample rank_memory_rate(backends::Backend& backend, comm::Communicator& all) {
  MemoryUpdate update(backend, kRankElements);
  const auto run = [&] {
    const auto start = Clock::now();
    update.run();
    return base::seconds_since(start);
  };
  run();
  const double bytes = update.bytes();
  // All ranks take part in every run, so the fastest run is the one that no other program
  // disturbed.
  const std::vector<double> seconds = times_of(run, kMinCollectiveRuns, all);
  return {.name = plan::rank_memory_name(all.size()),
          .shape = {bytes},
          .unit = plan::Work::host_bytes,
          .work = bytes,
          .seconds = *std::ranges::min_element(seconds)};
}

}  // namespace snug::bench
