// `snug bench trace`: what a training step actually did, operation by operation.
#pragma once

#include "formats/recipe/recipe.h"

namespace snug::bench {

// Runs the recipe's step with random weights and a full batch, as `snug bench step` does. Prints a
// line of JSON for each operation of micro_first, micro_next and update: what it writes; the
// channel, decisions, extent and bytes that the backend recorded; its measured and its planned
// seconds; and, where it did not do what the program says, how it differs ("differences").
// Operations that run in one launch share one time: it is printed with the first, together with
// their number ("operations_in_launch"); the others only name the first ("launched_with"). Returns
// 0, or 1 where an operation differs. Throws UserError.
int trace(const formats::Recipe& recipe);

}  // namespace snug::bench
