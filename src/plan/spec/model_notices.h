// What of a model a job computes otherwise than transformers and PEFT do, and says so.
#pragma once

#include <string>
#include <vector>

#include "formats/recipe/recipe.h"
#include "models/config/config.h"

namespace snug::plan {

// A sentence for each such thing that the model, or the recipe with this model, asks for.
std::vector<std::string> model_notices(const formats::Recipe& recipe,
                                       const models::ModelConfig& config);

}  // namespace snug::plan
