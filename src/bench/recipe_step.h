// The training step of a recipe, as `snug bench step` and `snug bench trace` run it.
#pragma once

#include <memory>

#include "backends/backend.h"
#include "bench/calibration_steps.h"
#include "formats/recipe/recipe.h"

namespace snug::bench {

struct RecipeStep {
  formats::Recipe recipe;  // completed with defaults for its model
  std::unique_ptr<backends::Backend> backend;
  CalibrationStep step;  // full rows, in segments of equal length
};

// The caller still sets least_repeats and least_seconds. Throws UserError.
RecipeStep recipe_step(const formats::Recipe& given);

}  // namespace snug::bench
