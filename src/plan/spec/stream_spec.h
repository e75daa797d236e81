// What the streams of a model's tokens ask of a recipe: a model with an encoder has two.
#pragma once

#include "formats/recipe/recipe.h"
#include "models/config/config.h"

namespace snug::plan {

// Throws UserError, with the recipe's location: of a model with an encoder for what is not built
// for encoder-decoders, of another one for a length of its decoder's rows alone.
void check_streams(const formats::Recipe& recipe, const models::ModelConfig& model);

// Throws UserError where the recipe asks for a type in which the model does not compute.
void check_compute_type(const formats::Recipe& recipe, const models::ModelConfig& model);

}  // namespace snug::plan
