// Notes about what a job computes differently from transformers and PEFT.
#pragma once

#include <string>
#include <vector>

#include "formats/recipe/recipe.h"
#include "models/config/config.h"

namespace snug::plan {

// A sentence for each such difference that applies to the model, or to the recipe with this model.
std::vector<std::string> model_notices(const formats::Recipe& recipe,
                                       const models::ModelConfig& config);

}  // namespace snug::plan
