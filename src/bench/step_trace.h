// `snug bench trace`: what a training step did, operation by operation.
#pragma once

#include "formats/recipe/recipe.h"

namespace snug::bench {

// Runs the recipe's step with random weights and a full batch, as `snug bench step` does. Prints a
// line of JSON for each operation of micro_first, micro_next and update: what it writes, the
// channel, decisions, extent and bytes as the backend noted them, its seconds, those of the plan's
// clock, and where it did not do what the program says, how ("differences"). Operations that run in
// one launch have one time: the first has that of all and their number ("operations_in_launch"),
// each other names the first ("launched_with") and has none. Returns 0, or 1 where an operation
// differs. Throws UserError.
int trace(const formats::Recipe& recipe);

}  // namespace snug::bench
