// Plans of several ranks: every strategy makes programs that the verifier accepts, and a rank holds
// what the strategy says.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "../program/moved_awaits.h"
#include "backends/backend.h"
#include "backends/cuda/device/planned_card.h"
#include "models/config/config.h"
#include "null_target.h"
#include "plan/job/job.h"
#include "program/kinds/kind.h"

namespace snug::plan {
namespace {

using passes::GradientSharding;
using passes::Prefetch;
using passes::ShardingOptions;
using passes::WeightSharding;

struct Strategy {
  const char* name;
  bool shards;
  WeightSharding weights;
  GradientSharding gradients;
};

const std::vector<Strategy> kStrategies{
    {"ddp", false, WeightSharding::whole, GradientSharding::summed},
    {"zero1", true, WeightSharding::whole, GradientSharding::scattered_last},
    {"zero2", true, WeightSharding::whole, GradientSharding::scattered},
    {"shard_grad_op", true, WeightSharding::program_by_program, GradientSharding::scattered},
    {"full_shard", true, WeightSharding::layer_by_layer, GradientSharding::scattered}};

ShardingOptions options_of(const Strategy& strategy, int32_t shards, int32_t replicas) {
  return {.shards = strategy.shards ? shards : 1,
          .replicas = strategy.shards ? replicas : shards * replicas,
          .weights = strategy.weights,
          .gradients = strategy.gradients,
          .prefetch = Prefetch::pre,
          .threshold_elements = 1000};
}

struct Method {
  const char* name;
  methods::MethodKind kind;
  bool quantised;
  formats::Optimizer optimizer;
  bool in_backward;
};

const std::vector<Method> kMethods{
    {"full", methods::MethodKind::full, false, formats::Optimizer::adamw, false},
    {"full in backward", methods::MethodKind::full, false, formats::Optimizer::adamw, true},
    {"full 8 bit", methods::MethodKind::full, false, formats::Optimizer::adamw_8bit, false},
    {"full bf16", methods::MethodKind::full, false, formats::Optimizer::adamw_bf16, false},
    {"lora", methods::MethodKind::lora, false, formats::Optimizer::adamw, false},
    {"qlora", methods::MethodKind::qlora, true, formats::Optimizer::adamw, false},
    {"adapter", methods::MethodKind::adapter, true, formats::Optimizer::adamw, false}};

TrainingSpec small_spec(const Method& method) {
  TrainingSpec spec;
  spec.model = models::find_model("smollm2-135m").config;
  spec.model.num_layers = 3;
  spec.method = method.kind;
  if (method.quantised) spec.quantization = passes::QuantizeOptions{.nested = true, .kept = {}};
  spec.lora.row_tokens = 32;
  spec.update.optimizer = method.optimizer;
  if (method.in_backward) spec.update.max_grad_norm = 0;
  spec.update_in_backward = method.in_backward;
  spec.compute = program::DType::f32;
  if (method.optimizer == formats::Optimizer::adamw_bf16) spec.compute = program::DType::bf16;
  spec.row_tokens = 32;
  spec.evaluate = true;
  spec.verify = true;
  return spec;
}

TEST(Ranks, EveryStrategyMakesSoundPrograms) {
  const auto target = backends::open_backend("reference", {.threads = 1});
  for (const Strategy& strategy : kStrategies)
    for (const Method& method : kMethods)
      for (const int64_t accumulation : {1, 3})
        for (const auto mode : {passes::RecomputeMode::none, passes::RecomputeMode::layer})
          for (const auto prefetch : {Prefetch::pre, Prefetch::post, Prefetch::none})
            for (const int32_t replicas : {1, 2}) {
              if (method.in_backward && accumulation > 1) continue;
              SCOPED_TRACE(fmt::format("{} {} accumulation {} replicas {}", strategy.name,
                                       method.name, accumulation, replicas));
              TrainingSpec spec = small_spec(method);
              spec.accumulation = accumulation;
              spec.recompute = mode;
              spec.ranks = options_of(strategy, 3, replicas);
              spec.ranks.prefetch = prefetch;
              const Job job = plan_training(spec, *target);
              EXPECT_GT(job.layout.spaces[0].arena_bytes, 0);
            }
}

TEST(Ranks, TheVerifierSeesEachAwaitThatIsNotInItsPlace) {
  const NullTarget target;
  for (const Strategy& strategy : kStrategies)
    for (const Method& method : kMethods) {
      SCOPED_TRACE(fmt::format("{} {}", strategy.name, method.name));
      TrainingSpec spec = small_spec(method);
      spec.ranks = options_of(strategy, 3, 2);
      const Job job = plan_training(spec, target);
      int awaits = 0;
      for (const program::Program& program : job.programs)
        if (program.operations.empty() ||
            program::traits_of(program.operations.front()).performer != program::Performer::runtime)
          awaits += testing::expect_awaits_in_place(program);
      EXPECT_GT(awaits, 0);
    }
}

// Sharded operands are fewer or more than those that were lowered.
TEST(Ranks, LaunchesAreThoseOfTheOperandsThatARankHas) {
  const backends::cuda::PlannedCard card(*backends::cuda::find_hardware("h100"), 0);
  for (const Strategy& strategy : kStrategies)
    for (const Method& method : kMethods) {
      TrainingSpec spec = small_spec(method);
      spec.compute = program::DType::bf16;
      spec.ranks = options_of(strategy, 3, 2);
      const Job job = plan_training(spec, card);
      for (const program::Program& program : job.programs)
        for (const program::Operation& operation : program.operations) {
          if (program::traits_of(operation).performer == program::Performer::runtime) continue;
          EXPECT_EQ(operation.launches, card.launches({program, operation}))
              << strategy.name << " " << method.name << " " << name_of(operation.kind());
        }
    }
}

// What is sharded may lie in host memory too: a rank's part streams.
TEST(Ranks, EveryStrategyStreamsItsParts) {
  const NullTarget target;
  for (const Strategy& strategy : kStrategies)
    for (const Method& method : kMethods)
      for (const int64_t accumulation : {1, 3}) {
        if (method.in_backward && accumulation > 1) continue;
        TrainingSpec spec = small_spec(method);
        spec.accumulation = accumulation;
        spec.recompute = passes::RecomputeMode::layer;
        spec.ranks = options_of(strategy, 3, 2);
        const int64_t kept = plan_training(spec, target).layout.spaces[0].arena_bytes;
        for (const bool optimizer : {false, true})
          for (const bool on_host : {false, true})
            for (const int64_t window_bytes : {0, 1 << 20}) {
              if (on_host && !optimizer) continue;
              SCOPED_TRACE(fmt::format("{} {} accumulation {} optimizer {} on host {} window {}",
                                       strategy.name, method.name, accumulation, optimizer, on_host,
                                       window_bytes));
              spec.streaming = {.params = true,
                                .optimizer = optimizer,
                                .update_on_host = on_host,
                                .threshold_bytes = 1000,
                                .window_bytes = window_bytes};
              const Job job = plan_training(spec, target);
              EXPECT_LT(job.layout.spaces[0].arena_bytes, kept);
            }
      }
}

}  // namespace
}  // namespace snug::plan
