// Makes the ranks of a job from a recipe: how many, and what a strategy shards over them.
#pragma once

#include "formats/recipe/recipe.h"
#include "passes/sharding/sharding.h"

namespace snug::plan {

// Whether the ranks that share weights are those of a group, and groups repeat one another.
bool is_hybrid(formats::Strategy strategy);

// Throws UserError for numbers of devices that the strategy cannot divide, and for combinations
// that are not built.
passes::ShardingOptions rank_grid(const formats::Recipe& recipe);

// Throws UserError where the recipe says how many rows a step of all devices has (train_batch_size)
// and its other keys make another number.
void check_step_rows(const formats::Recipe& recipe);

}  // namespace snug::plan
