// Makes the ranks of a job from a recipe: their number, and what the strategy shards over them.
#pragma once

#include "formats/recipe/recipe.h"
#include "passes/sharding/sharding.h"

namespace snug::plan {

// Whether weights are sharded within a group of ranks and replicated between groups.
bool is_hybrid(formats::Strategy strategy);

// Throws UserError for a number of devices that the strategy cannot divide, and for combinations
// that are not built.
passes::ShardingOptions rank_grid(const formats::Recipe& recipe);

// Throws UserError where train_batch_size (the rows of a step over all devices) contradicts the
// recipe's other keys.
void check_step_rows(const formats::Recipe& recipe);

}  // namespace snug::plan
