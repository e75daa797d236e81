// What a recipe leaves open that its model decides, or an adapter that training begins with.
#pragma once

#include "formats/recipe/recipe.h"
#include "models/config/config.h"

namespace snug::plan {

// The recipe with the defaults that depend on the model: a max_length nobody gave is at most the
// model's positions, a folder stored in 4 bits makes the method qlora, and an adapter that training
// begins with says its rank, alpha, scaling and target modules where the recipe does not. Throws
// UserError for a recipe that asks for another storage than the folder has, and for an adapter that
// Snug cannot apply.
formats::Recipe resolve(formats::Recipe recipe, const models::ModelConfig& model);

}  // namespace snug::plan
