// The weights that a recipe freezes.
#pragma once

#include <string>
#include <vector>

#include "formats/recipe/recipe.h"
#include "models/config/config.h"

namespace snug::plan {

// The names of the weights that a full job does not train: those that trainable_modules, if given,
// does not select, and those that freeze_modules selects, which takes precedence. Throws UserError
// for a pattern that selects nothing, with the nearest name, and where nothing is left to train.
std::vector<std::string> frozen_weights(const formats::Recipe& recipe,
                                        const models::ModelConfig& model);

}  // namespace snug::plan
