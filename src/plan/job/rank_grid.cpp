#include "plan/job/rank_grid.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace snug::plan {
namespace {

using formats::Recipe;
using formats::Strategy;
using passes::GradientSharding;
using passes::ShardingOptions;
using passes::WeightSharding;

WeightSharding weights_of(Strategy strategy) {
  switch (strategy) {
    case Strategy::shard_grad_op:
    case Strategy::hybrid_shard_grad_op:
      return WeightSharding::program_by_program;
    case Strategy::full_shard:
    case Strategy::hybrid_full_shard:
      return WeightSharding::layer_by_layer;
    case Strategy::ddp:
    case Strategy::zero1:
    case Strategy::zero2:
      break;
  }
  return WeightSharding::whole;
}

GradientSharding gradients_of(Strategy strategy) {
  if (strategy == Strategy::ddp) return GradientSharding::summed;
  return strategy == Strategy::zero1 ? GradientSharding::scattered_last
                                     : GradientSharding::scattered;
}

// The number of ranks that share the tensors of a replica.
int64_t shards_of(const Recipe& recipe, int64_t ranks) {
  if (recipe.strategy == Strategy::ddp) {
    // With a searched strategy, shard_devices applies only to the hybrid ones.
    if (recipe.shard_devices > 1 && recipe.is_given("strategy"))
      recipe.fail("shard_devices",
                  fmt::format("is {}, but strategy=ddp keeps all on every device; use "
                              "strategy=hybrid_full_shard, or leave it out",
                              recipe.shard_devices));
    return 1;
  }
  if (!is_hybrid(recipe.strategy)) {
    if (recipe.shard_devices > 0 && recipe.shard_devices != ranks)
      recipe.fail("shard_devices",
                  fmt::format("is {}, but strategy={} shards over all {} devices; "
                              "use a hybrid strategy, or leave it out",
                              recipe.shard_devices, base::word_of(recipe.strategy), ranks));
    return ranks;
  }
  const int64_t shards =
      recipe.shard_devices > 0 ? recipe.shard_devices : recipe.devices_per_node();
  if (ranks % shards != 0)
    recipe.fail(
        "shard_devices",
        fmt::format("is {}, which does not divide the {} devices of the job", shards, ranks));
  return shards;
}

}  // namespace

bool is_hybrid(Strategy strategy) {
  return strategy == Strategy::hybrid_shard_grad_op || strategy == Strategy::hybrid_full_shard;
}

ShardingOptions rank_grid(const Recipe& recipe) {
  ShardingOptions options;
  const int64_t ranks = recipe.rank_count();
  if (ranks > std::numeric_limits<int32_t>::max() / 2)
    recipe.fail("devices", fmt::format("makes {} ranks, which is more than can be counted", ranks));
  if (ranks == 1) return options;
  const int64_t shards = shards_of(recipe, ranks);
  options.shards = static_cast<int32_t>(shards);
  options.replicas = static_cast<int32_t>(ranks / shards);
  options.node_ranks = static_cast<int32_t>(recipe.devices_per_node());
  options.weights = weights_of(recipe.strategy);
  options.gradients = gradients_of(recipe.strategy);
  options.prefetch = recipe.prefetch;
  options.sent_bf16 = recipe.reduce_dtype == formats::ReduceDtype::bf16;
  options.threshold_elements = recipe.shard_threshold;
  return options;
}

void check_step_rows(const Recipe& recipe) {
  const int64_t total = recipe.train_batch_size;
  if (total == 0) return;
  // With per_device_train_batch_size=auto, gradient_accumulation_steps is the number of rows per
  // device in a step.
  const int64_t rows = std::max<int64_t>(1, recipe.per_device_train_batch_size);
  const int64_t steps = recipe.gradient_accumulation_steps;
  const int64_t ranks = recipe.rank_count();
  if (total % rows == 0 && total / rows % steps == 0 && total / rows / steps == ranks) return;
  recipe.fail("train_batch_size",
              fmt::format("is {}, but {} device{}, per_device_train_batch_size {} and "
                          "gradient_accumulation_steps {} make {:.0f} rows in a step; change one "
                          "of them, or leave train_batch_size out",
                          total, ranks, ranks == 1 ? "" : "s", rows, steps,
                          static_cast<double>(rows) * static_cast<double>(steps) *
                              static_cast<double>(ranks)));
}

}  // namespace snug::plan
