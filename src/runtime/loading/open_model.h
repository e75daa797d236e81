// The model that a job reads.
#pragma once

#include "formats/recipe/recipe.h"
#include "models/config/config.h"

namespace snug::runtime {

// The model that a recipe names, with the tables that an adapter which is applied to it brings.
// Throws UserError for one without weights, unless init=random.
models::ModelSource open_model(const formats::Recipe& recipe);
// The same to be trained, whatever adapter training goes on with.
models::ModelSource open_model_to_train(const formats::Recipe& recipe);

}  // namespace snug::runtime
