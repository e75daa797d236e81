// What one process finds wrong with a job before it starts the ranks of it: each of them would say
// the same, and the launcher would add that they ended.
#pragma once

#include "formats/recipe/recipe.h"

namespace snug::train {

// Throws UserError. Does nothing where this process starts no ranks.
void check_before_ranks(const formats::Recipe& recipe);

}  // namespace snug::train
