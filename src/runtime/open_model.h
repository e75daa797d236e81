// The model that a job reads.
#pragma once

#include "formats/recipe.h"
#include "models/config.h"

namespace snug::runtime {

// The model that a recipe names. Throws UserError for one without weights, unless init=random.
models::ModelSource open_model(const formats::Recipe& recipe);

}  // namespace snug::runtime
