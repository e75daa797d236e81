// Opens the model that a job reads.
#pragma once

#include "formats/recipe/recipe.h"
#include "models/config/config.h"

namespace snug::runtime {

// The model that a recipe names, with the embedding tables that an applied adapter brings along.
// Throws UserError for a model without weights, unless init=random.
models::ModelSource open_model(const formats::Recipe& recipe);
// The model that a recipe names, to be trained; the adapter from which training continues is
// ignored.
models::ModelSource open_model_to_train(const formats::Recipe& recipe);

}  // namespace snug::runtime
