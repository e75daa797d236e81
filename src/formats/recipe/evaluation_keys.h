// What the keys of evaluation and of the best checkpoint mean together.
#pragma once

#include "formats/recipe/recipe.h"

namespace snug::formats {

// Where the command line says an interval in steps, it takes precedence over a strategy of the
// recipe's file. Without eval_steps, eval_strategy: steps evaluates every logging_steps that the
// recipe gives, as the Trainer does. What asks for the best evaluation ranks them by their loss
// where metric_for_best_model is not given.
void settle_evaluation_keys(Recipe& recipe);

// Throws UserError where answers, or the best of a run's evaluations, are asked for and there are
// none, or no checkpoint of it.
void check_evaluation_keys(const Recipe& recipe);

// Whether the least value of this metric is the best, where greater_is_better does not say it.
bool is_least_best(std::string_view metric);

}  // namespace snug::formats
