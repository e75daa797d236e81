// The model card of what `snug train` made, written once all that it tells of is there.
#pragma once

#include "formats/recipe/recipe.h"

namespace snug::cli {

// Writes README.md, and the licence files of the base, into OUTPUT_DIR/adapter or OUTPUT_DIR/model,
// from what the run that has just ended wrote there. Training is done by then: where the card
// cannot be written, that is said, and nothing is thrown.
void write_run_card(const formats::Recipe& recipe);

}  // namespace snug::cli
