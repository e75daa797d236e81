// Whether training balances the use of experts, and how much: as a recipe says, or the model.
#pragma once

#include "formats/recipe/recipe.h"
#include "models/config/config.h"

namespace snug::plan {

// The recipe with what the model says where nobody gave output_router_logits or
// router_aux_loss_coef.
void settle_router_loss(formats::Recipe& recipe, const models::ModelConfig& model);

// The model with what the recipe gives of the two. Throws UserError where it gives one of them and
// the model has no experts.
models::ModelConfig with_router_loss(const formats::Recipe& recipe, models::ModelConfig model);

}  // namespace snug::plan
