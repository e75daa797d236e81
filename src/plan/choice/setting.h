// What can be chosen for a job without changing what it learns: a point of the space that
// `snug search` goes through. Values; pure functions.
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "formats/recipe/recipe.h"
#include "plan/choice/change.h"
#include "program/ir/program.h"

namespace snug::plan {

struct Setting {
  formats::Strategy strategy = formats::Strategy::ddp;
  formats::Prefetch prefetch = formats::Prefetch::pre;
  formats::Recompute recompute = formats::Recompute::none;
  bool offloads_activations = false;
  bool offloads_params = false;
  formats::OffloadOptimizer optimizer = formats::OffloadOptimizer::none;
  int64_t rows = 1;          // of a micro-batch on a device
  int64_t accumulation = 1;  // micro-batches in a step
  auto operator<=>(const Setting&) const = default;
};

// The keys that make a recipe have this setting, in the order in which they are shown. With several
// devices they name the strategy; on a processor, nothing about offloading.
Overrides overrides_of(const Setting& setting, const formats::Recipe& recipe,
                       const program::Target& target);

// All settings of a recipe: every combination of strategy, prefetch, recompute, offloading and
// micro-batch, except where the recipe gives the key. A recipe that gives
// per_device_train_batch_size or gradient_accumulation_steps has so many rows in a step, which
// micro-batches divide. In one that gives neither, a step is one micro-batch, of 1, 2, 4, ... rows.
std::vector<Setting> settings_of(const formats::Recipe& recipe, const program::Target& target);

}  // namespace snug::plan
