// The machine that a recipe names.
#pragma once

#include <memory>

#include "backends/backend.h"
#include "formats/recipe.h"

namespace snug::cli {

// The recipe's backend with its threads and its device budget. Throws UserError.
std::unique_ptr<backends::Backend> open_target(const formats::Recipe& recipe);

}  // namespace snug::cli
