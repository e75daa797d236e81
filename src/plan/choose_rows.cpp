// Stages: from all rows of a step in one micro-batch down to single rows, plan the job; keep the
// fastest that fits; stop where nothing is computed again, since fewer rows at a time are no faster
// then.
#include "plan/choose_rows.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "plan/calibration_file.h"
#include "plan/change.h"
#include "plan/fit.h"
#include "plan/layer_growth.h"

namespace snug::plan {
namespace {

using formats::Recipe;

// A job of so many rows at a time, by few layers that keep their input alone where that is open.
// Nothing where the recipe refuses so many.
std::optional<int64_t> least_device_bytes(const TrainingInputs& inputs, const Rates& rates) {
  try {
    TrainingSpec spec = training_spec(inputs.recipe, inputs.model.config, inputs.target,
                                      inputs.data ? inputs.data->shape : RowShape{});
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

}  // namespace

Recipe with_rows(const Recipe& recipe, int64_t rows) {
  const int64_t steps = recipe.gradient_accumulation_steps / rows;
  return with_overrides(recipe, {{"per_device_train_batch_size", std::to_string(rows)},
                                 {"gradient_accumulation_steps", std::to_string(steps)}});
}

std::string rows_text(const Recipe& recipe) {
  const int64_t rows = recipe.per_device_train_batch_size;
  return fmt::format("{} row{} in a micro-batch, gradient_accumulation_steps={}", rows,
                     rows == 1 ? "" : "s", recipe.gradient_accumulation_steps);
}

Recipe with_chosen_rows(const TrainingInputs& inputs, const MeasureProcess& measure) {
  const Recipe& recipe = inputs.recipe;
  if (recipe.per_device_train_batch_size > 0) return recipe;
  if (recipe.optim_in_backward) return with_rows(recipe, recipe.gradient_accumulation_steps);
  const Rates rates = rates_for(recipe, inputs.target);
  const int64_t capacity =
      inputs.least_capacity_bytes.value_or(inputs.target.capacity_bytes(program::Space::device));
  Recipe best = with_rows(recipe, 1);
  std::optional<double> best_seconds;
  for (const int64_t rows : micro_batches(recipe.gradient_accumulation_steps)) {
    const Recipe candidate = with_rows(recipe, rows);
    TrainingInputs changed{candidate,   inputs.model, inputs.target,
                           inputs.data, false,        inputs.least_capacity_bytes};
    const std::optional<int64_t> least_bytes = least_device_bytes(changed, rates);
    if (!least_bytes || (capacity > 0 && *least_bytes > capacity)) continue;
    const PlanDocument document = assemble_training(changed, measure).document;
    const bool fits_all = capacity <= 0 || document.device.report.peak_bytes <= capacity;
    if (!fits_all || !fits(candidate, document, inputs.target)) continue;
    if (!best_seconds || document.step_seconds < *best_seconds) {
      best = candidate;
      best_seconds = document.step_seconds;
    }
    if (computes_nothing_again(document)) break;
  }
  return best;
}

}  // namespace snug::plan
