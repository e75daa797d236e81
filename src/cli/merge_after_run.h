// merge=true: a run ends by merging its adapter into the model.
#pragma once

#include "cli/merge_outcome.h"
#include "formats/recipe/recipe.h"

namespace snug::cli {

// Before anything is trained: throws UserError where the keys of merging ask for what the model
// does not have.
void check_merge_of_run(const formats::Recipe& recipe);

// Makes OUTPUT_DIR/merged of OUTPUT_DIR/adapter, in place of what an earlier run left there, says
// how far it is from what was trained, and adds that to measured.json. Returns 0 or kNotAsItIs.
int merge_after_run(const formats::Recipe& recipe);

}  // namespace snug::cli
