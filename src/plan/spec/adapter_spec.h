// Settles what a recipe with an adapter method leaves open: from the adapter with which training
// continues, or else from the model.
#pragma once

#include "formats/recipe/recipe.h"
#include "models/config/config.h"

namespace snug::plan {

// Throws UserError for an adapter that Snug cannot apply, or whose method is not the recipe's.
void settle_adapter(formats::Recipe& recipe, const models::ModelConfig& model);

}  // namespace snug::plan
