// Keys that a user set and that a training job would silently ignore.
#pragma once

#include "formats/recipe/recipe.h"

namespace snug::plan {

// Throws UserError for a key of LoRA with method=full, for one of full training with LoRA, and for
// documents per row where packing is off. A key that holds its default may stay: recipes that
// programs write list all of them. So may a file's keys of the other method where the command line
// chose the method, which wins over the file; but not an adapter, which would not be trained
// further.
void refuse_unused_keys(const formats::Recipe& recipe);

}  // namespace snug::plan
