// Stages: plan the job with all rows of a step in one micro-batch, then with fewer rows, down to
// one; keep the fastest that fits; stop where nothing is recomputed, since still fewer rows would
// not be faster.
#include "plan/choice/choose_rows.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "plan/choice/change.h"
#include "plan/choice/fit.h"
#include "plan/job/layer_growth.h"
#include "plan/time/calibration_file.h"
#include "program/work/target.h"

namespace snug::plan {
namespace {

using formats::Recipe;

// A lower bound of device memory with this number of rows, from jobs of few layers that keep only
// their input if recompute is open. Nothing where the recipe refuses that number.
std::optional<int64_t> least_device_bytes(const TrainingInputs& inputs, const Rates& rates) {
  try {
    TrainingSpec spec =
        training_spec(inputs.recipe, inputs.model.config, inputs.target, inputs.documents());
    if (inputs.recipe.recompute == formats::Recompute::automatic) {
      spec.recompute = formats::Recompute::layer;
      if (!inputs.target.host_reaches_device()) spec.activation_offloading = true;
    }
    spec.streaming.window_bytes = 0;
    return size_by_layers(spec, inputs.target, rates).lower_bound_bytes[0];
  } catch (const base::UserError&) {
    return std::nullopt;
  }
}

bool computes_nothing_again(const PlanDocument& document) {
  return document.recompute_nothing_bytes == document.device.report.peak_bytes;
}

// The ways to split the rows of a step into micro-batches, largest micro-batches first.
std::vector<Recipe> splits_of(const Recipe& recipe) {
  if (recipe.per_device_train_batch_size > 0 || recipe.optim_in_backward)
    return {with_fewest_rows(recipe)};
  std::vector<Recipe> splits;
  for (const int64_t rows : micro_batches(recipe.gradient_accumulation_steps))
    splits.push_back(with_rows(recipe, rows));
  return splits;
}

}  // namespace

Recipe with_rows(const Recipe& recipe, int64_t rows) {
  const int64_t steps = recipe.gradient_accumulation_steps / rows;
  return with_overrides(recipe, {{"per_device_train_batch_size", std::to_string(rows)},
                                 {"gradient_accumulation_steps", std::to_string(steps)}});
}

Recipe with_fewest_rows(const Recipe& recipe) {
  if (recipe.per_device_train_batch_size > 0) return recipe;
  return with_rows(recipe, recipe.optim_in_backward ? recipe.gradient_accumulation_steps : 1);
}

std::string rows_text(const Recipe& recipe) {
  const int64_t rows = recipe.per_device_train_batch_size;
  return fmt::format("{} row{} in a micro-batch, gradient_accumulation_steps={}", rows,
                     rows == 1 ? "" : "s", recipe.gradient_accumulation_steps);
}

std::optional<FittingRows> fastest_rows(const TrainingInputs& inputs,
                                        const MeasureProcess& measure) {
  const Rates rates = rates_for(inputs.recipe, inputs.target);
  const int64_t capacity =
      inputs.least_capacity_bytes.value_or(inputs.target.capacity_bytes(program::Space::device));
  std::optional<FittingRows> best;
  for (const Recipe& candidate : splits_of(inputs.recipe)) {
    TrainingInputs changed{candidate,   inputs.model, inputs.target,
                           inputs.data, false,        inputs.least_capacity_bytes};
    const std::optional<int64_t> least_bytes = least_device_bytes(changed, rates);
    if (!least_bytes || (capacity > 0 && *least_bytes > capacity)) continue;
    const PlanDocument document = assemble_training(changed, measure).document;
    const bool fits_all = capacity <= 0 || document.device.report.peak_bytes <= capacity;
    if (!fits_all || !fits(candidate, document, inputs.target)) continue;
    if (!best || document.step_seconds < best->step_seconds)
      best = FittingRows{candidate, document.step_seconds};
    if (computes_nothing_again(document)) break;
  }
  return best;
}

Recipe with_chosen_rows(const TrainingInputs& inputs, const MeasureProcess& measure) {
  const Recipe& recipe = inputs.recipe;
  if (recipe.per_device_train_batch_size > 0 || recipe.optim_in_backward)
    return with_fewest_rows(recipe);
  const std::optional<FittingRows> best = fastest_rows(inputs, measure);
  return best ? best->recipe : with_fewest_rows(recipe);
}

}  // namespace snug::plan
