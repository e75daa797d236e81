// What the number of a model's token streams requires of a recipe: a model with an encoder has two.
#pragma once

#include "formats/recipe/recipe.h"
#include "models/config/config.h"

namespace snug::plan {

// Throws UserError, with the recipe's location: for a model with an encoder, where something is not
// built for encoder-decoders; for any other model, where the recipe gives a separate length for the
// decoder.
void check_streams(const formats::Recipe& recipe, const models::ModelConfig& model);

// Throws UserError where the recipe asks for a compute type that the model does not support.
void check_compute_type(const formats::Recipe& recipe, const models::ModelConfig& model);

}  // namespace snug::plan
