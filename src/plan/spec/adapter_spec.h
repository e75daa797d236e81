// What the recipe of an adapter leaves open: an adapter that training goes on with says it, else
// the model.
#pragma once

#include "formats/recipe/recipe.h"
#include "models/config/config.h"

namespace snug::plan {

// Throws UserError for an adapter that Snug cannot apply, or of another method than the recipe's.
void settle_adapter(formats::Recipe& recipe, const models::ModelConfig& model);

}  // namespace snug::plan
