// A setting: one combination of the choices that do not change what a job learns, among which `snug
// search` searches. Values and pure functions.
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
  int64_t rows = 1;          // per micro-batch and device
  int64_t accumulation = 1;  // micro-batches per step
  auto operator<=>(const Setting&) const = default;
};

// The keys that give a recipe this setting, in the order in which they are shown. They include the
// strategy if there are several devices, and nothing about offloading on a CPU.
Overrides overrides_of(const Setting& setting, const formats::Recipe& recipe,
                       const program::Target& target);

// All settings of a recipe: every combination of strategy, prefetch, recompute, offloading and
// micro-batch, except where the recipe gives the key. If a recipe gives per_device_train_batch_size
// or gradient_accumulation_steps, these fix the rows of a step, which micro-batches divide. If it
// gives neither, a step is one micro-batch of 1, 2, 4, ... rows.
std::vector<Setting> settings_of(const formats::Recipe& recipe, const program::Target& target);

}  // namespace snug::plan
