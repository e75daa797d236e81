// From a recipe to the ranks of a job: how many, and what a strategy shards over them.
#pragma once

#include "formats/recipe.h"
#include "passes/sharding.h"

namespace snug::plan {

// Throws UserError for numbers of devices that the strategy cannot divide, and for combinations
// that are not built.
passes::ShardingOptions rank_grid(const formats::Recipe& recipe);

}  // namespace snug::plan
