// The machine that a recipe plans for.
#pragma once

#include <memory>

#include "formats/recipe.h"
#include "program/target.h"

namespace snug::cli {

// The card that the recipe names as its device, whether it is here or not; else its backend with
// its threads and its device budget. Throws UserError.
std::unique_ptr<program::Target> open_target(const formats::Recipe& recipe);

}  // namespace snug::cli
