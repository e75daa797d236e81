#include "plan/choice/setting.h"

#include <algorithm>
#include <array>
#include <string>

#include "methods/method.h"
#include "methods/objective.h"
#include "methods/optimizer.h"
#include "passes/gradient/recompute.h"
#include "plan/choice/change.h"
#include "plan/job/rank_grid.h"
#include "program/work/target.h"

namespace snug::plan {
namespace {

using formats::OffloadOptimizer;
using formats::Prefetch;
using formats::Recipe;
using formats::Recompute;
using formats::Strategy;

// Limits for micro-batches of free size: larger ones do not make products faster.
constexpr int64_t kMaxRows = 128;
constexpr int64_t kMaxTokens = int64_t{1} << 18;

template <typename Enum>
std::vector<Enum> all_of() {
  std::vector<Enum> values;
  for (const base::Word<Enum>& word : words_of(Enum{})) values.push_back(word.value);
  return values;
}

// Only the recipe's value, if the recipe gives the key; otherwise all values.
template <typename T>
std::vector<T> choices(const Recipe& recipe, const char* key, const T& value, std::vector<T> all) {
  return recipe.is_given(key) ? std::vector<T>{value} : std::move(all);
}

bool shards_weights(Strategy strategy) {
  return strategy == Strategy::shard_grad_op || strategy == Strategy::full_shard ||
         strategy == Strategy::hybrid_shard_grad_op || strategy == Strategy::hybrid_full_shard;
}

bool may_have_checkpoints(Recompute mode) {
  return passes::keeps_checkpoints(mode) || mode == Recompute::automatic;
}

struct Grouping {
  Strategy strategy = Strategy::ddp;
  Prefetch prefetch = Prefetch::pre;
};

std::vector<Grouping> groupings(const Recipe& recipe) {
  if (rank_grid(recipe).ranks() == 1) return {{recipe.strategy, recipe.prefetch}};
  std::vector<Strategy> strategies = all_of<Strategy>();
  // By default the groups of a hybrid strategy are whole machines, so hybrid strategies need
  // several machines or an explicit group size.
  if (recipe.nodes <= 1 && recipe.shard_devices == 0) std::erase_if(strategies, is_hybrid);
  if (recipe.shard_devices > 0)
    std::erase_if(strategies, [](Strategy strategy) {
      return shards_weights(strategy) && !is_hybrid(strategy);
    });
  std::vector<Grouping> all;
  for (const Strategy strategy : choices(recipe, "strategy", recipe.strategy, strategies)) {
    const std::vector<Prefetch> ahead =
        shards_weights(strategy) ? choices(recipe, "prefetch", recipe.prefetch, all_of<Prefetch>())
                                 : std::vector{recipe.prefetch};
    for (const Prefetch prefetch : ahead) all.push_back({strategy, prefetch});
  }
  return all;
}

struct Keeping {
  Recompute recompute = Recompute::none;
  bool offloads = false;
};

std::vector<Keeping> keepings(const Recipe& recipe, const program::Target& target) {
  std::vector<bool> offloads{false, true};
  if (target.host_reaches_device()) offloads = {false};
  std::vector<Keeping> all;
  for (const Recompute mode : choices(recipe, "recompute", recipe.recompute, all_of<Recompute>()))
    for (const bool each :
         choices(recipe, "activation_offloading", recipe.activation_offloading, offloads))
      if (!each || may_have_checkpoints(mode)) all.push_back({mode, each});
  return all;
}

struct Streaming {
  bool params = false;
  OffloadOptimizer optimizer = OffloadOptimizer::none;
};

// Offloading the optimizer state of an adapter gains little, since that state is small.
std::vector<Streaming> streamings(const Recipe& recipe, const program::Target& target) {
  std::vector<bool> params{false, true};
  std::vector<OffloadOptimizer> optimizers{OffloadOptimizer::none};
  if (methods::method_of(recipe.method).trains_weights)
    optimizers = {OffloadOptimizer::none, OffloadOptimizer::stream, OffloadOptimizer::host};
  if (!methods::steps_on_host(recipe.optim, recipe.ema_decay))
    std::erase(optimizers, OffloadOptimizer::host);
  if (target.host_reaches_device()) {
    params = {false};
    optimizers = {OffloadOptimizer::none};
  }
  std::vector<Streaming> all;
  for (const bool each : choices(recipe, "offload_params", recipe.offload_params, params))
    for (const OffloadOptimizer optimizer :
         choices(recipe, "offload_optimizer", recipe.offload_optimizer, optimizers))
      all.push_back({each, optimizer});
  return all;
}

struct Batch {
  int64_t rows = 1;
  int64_t accumulation = 1;
};

std::vector<Batch> batches(const Recipe& recipe) {
  std::vector<Batch> all;
  // The answers of an update are whole groups.
  if (recipe.is_given("per_device_train_batch_size") ||
      recipe.is_given("gradient_accumulation_steps") ||
      methods::objective_of(recipe.objective).makes_answers) {
    // With auto, gradient_accumulation_steps is the number of rows in a step.
    const int64_t step_rows = std::max<int64_t>(1, recipe.per_device_train_batch_size) *
                              recipe.gradient_accumulation_steps;
    if (recipe.optim_in_backward) return {{step_rows, 1}};
    for (const int64_t rows : micro_batches(step_rows)) all.push_back({rows, step_rows / rows});
    return all;
  }
  for (int64_t rows = 1; rows == 1 || (rows <= kMaxRows && rows * recipe.max_length <= kMaxTokens);
       rows *= 2)
    all.push_back({rows, 1});
  return all;
}

}  // namespace

Overrides overrides_of(const Setting& setting, const Recipe& recipe,
                       const program::Target& target) {
  const auto word = [](auto value) { return std::string(base::word_of(value)); };
  const auto truth = [](bool value) { return std::string(value ? "true" : "false"); };
  Overrides overrides;
  if (rank_grid(recipe).ranks() > 1) {
    overrides.emplace_back("strategy", word(setting.strategy));
    if (shards_weights(setting.strategy))
      overrides.emplace_back("prefetch", word(setting.prefetch));
  }
  overrides.emplace_back("recompute", word(setting.recompute));
  if (!target.host_reaches_device()) {
    overrides.emplace_back("activation_offloading", truth(setting.offloads_activations));
    overrides.emplace_back("offload_params", truth(setting.offloads_params));
    overrides.emplace_back("offload_optimizer", word(setting.optimizer));
  }
  overrides.emplace_back("per_device_train_batch_size", std::to_string(setting.rows));
  overrides.emplace_back("gradient_accumulation_steps", std::to_string(setting.accumulation));
  return overrides;
}

std::vector<Setting> settings_of(const Recipe& recipe, const program::Target& target) {
  std::vector<Setting> settings;
  for (const Grouping& grouping : groupings(recipe))
    for (const Streaming& streaming : streamings(recipe, target))
      for (const Keeping& keeping : keepings(recipe, target))
        for (const Batch& batch : batches(recipe))
          settings.push_back({grouping.strategy, grouping.prefetch, keeping.recompute,
                              keeping.offloads, streaming.params, streaming.optimizer, batch.rows,
                              batch.accumulation});
  return settings;
}

}  // namespace snug::plan
