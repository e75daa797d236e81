// That each of several ranks runs every program as it is written: the collectives, in their groups
// and on their channel, next to what one rank runs.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "every_trace.h"
#include "rank_runs.h"

namespace snug::runtime {
namespace {

using plan::TrainingSpec;
using program::DType;

struct Case {
  const char* name;
  testing::TinyOptions options;
  passes::ShardingOptions ranks;
  std::function<void(TrainingSpec&)> change = [](TrainingSpec&) {};
};

testing::TinyOptions options_of(formats::Method method, bool is_coded = false) {
  testing::TinyOptions options;
  options.model = testing::rank_model();
  options.method = method;
  if (is_coded) options.quantization.emplace();
  if (!testing::lacks_bf16(options.backend)) options.compute = DType::bf16;
  return options;
}

passes::ShardingOptions one_replica_a_rank() { return {.replicas = 2, .threshold_elements = 1}; }

passes::ShardingOptions with_prefetch(passes::Prefetch prefetch) {
  passes::ShardingOptions ranks = testing::full_shard(2);
  ranks.prefetch = prefetch;
  return ranks;
}

std::vector<Case> cases() {
  using formats::Method;
  const auto two_micro_batches = [](TrainingSpec& spec) { spec.accumulation = 2; };
  return {
      {"ddp", options_of(Method::full), one_replica_a_rank(), two_micro_batches},
      {"state alone", options_of(Method::full), testing::shard_state(2), two_micro_batches},
      {"everything", options_of(Method::full), testing::full_shard(2),
       [](TrainingSpec& spec) {
         spec.accumulation = 2;
         spec.recompute = passes::RecomputeMode::layer;
         spec.evaluate = true;
       }},
      {"everything, gathered before it is needed", options_of(Method::full),
       with_prefetch(passes::Prefetch::post), two_micro_batches},
      {"everything, of frozen weights in 4 bits", options_of(Method::lora, true),
       testing::full_shard(2),
       [](TrainingSpec& spec) { spec.recompute = passes::RecomputeMode::layer; }},
      {"adapters on whole weights", options_of(Method::lora), one_replica_a_rank()},
  };
}

void expect_traces(const Case& each) {
  SCOPED_TRACE(each.name);
  const int ranks = each.ranks.ranks();
  const auto errors = comm::errors_of_ranks(ranks, {}, [&](comm::Communicator& communicator) {
    const bool are_shards = each.ranks.shards > 1;
    const comm::Mesh mesh{.all = &communicator,
                          .shards = are_shards ? &communicator : nullptr,
                          .replicas = are_shards ? nullptr : &communicator};
    TrainingSpec spec = testing::spec_of(each.options);
    spec.ranks = each.ranks;
    each.change(spec);
    const auto backend =
        backends::open_backend(each.options.backend, {.threads = 1, .mesh = &mesh});
    const plan::Job job = plan::plan_training(spec, *backend);
    Executor executor(job, *backend, &mesh);
    for (const program::Program& program : job.programs) {
      if (!testing::is_run_by_backends(program)) continue;
      testing::fill_batch(program, executor);
      const std::vector<backends::Trace> traces = executor.run_traced(testing::typed_name(program));
      const Planned planned{program, executor.bounds(testing::typed_name(program))};
      EXPECT_EQ(differences(planned, traces), std::vector<std::string>{});
      testing::expect_changes_seen(planned, traces);
    }
  });
  testing::expect_no_errors(errors);
}

TEST(RankTraces, EveryProgramRunsAsItIsWritten) {
  for (const Case& each : cases()) expect_traces(each);
}

}  // namespace
}  // namespace snug::runtime
