// The training step of a recipe, as `snug bench step` and `snug bench trace` run it.
#pragma once

#include <memory>

#include "backends/backend.h"
#include "bench/calibration_steps.h"
#include "formats/recipe/recipe.h"

namespace snug::bench {

struct RecipeStep {
  formats::Recipe recipe;  // resolved for its model
  std::unique_ptr<backends::Backend> backend;
  CalibrationStep step;  // rows full, in segments of equal length
};

// What a step is run for is set by the caller: least_repeats and least_seconds. Throws UserError.
RecipeStep recipe_step(const formats::Recipe& given);

}  // namespace snug::bench
