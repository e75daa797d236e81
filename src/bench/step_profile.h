// `snug bench step`: where the time of a training step goes, operation by operation where each
// stands in the step.
#pragma once

#include "formats/recipe/recipe.h"

namespace snug::bench {

// Runs the recipe's step with random weights and a batch full of tokens, in segments of equal
// length (max_segments of them a row), all trained. Prints for each form of operation (the names of
// program/work/rate_form.h, products apart by shape) its count, seconds, the seconds that the
// plan's clock gives it, its share of a step, and the rate of its work; or all of it as JSON.
// Returns 0. Throws UserError.
int step(const formats::Recipe& recipe, bool json);

}  // namespace snug::bench
