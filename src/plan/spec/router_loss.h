// Whether training balances the use of experts, and with which factor, as the recipe or else the
// model says.
#pragma once

#include "formats/recipe/recipe.h"
#include "models/config/config.h"

namespace snug::plan {

// Sets output_router_logits and router_aux_loss_coef from the model where the recipe does not give
// them.
void settle_router_loss(formats::Recipe& recipe, const models::ModelConfig& model);

// The model with the recipe's values of these two keys. Throws UserError where the recipe gives one
// of them and the model has no experts.
models::ModelConfig with_router_loss(const formats::Recipe& recipe, models::ModelConfig model);

}  // namespace snug::plan
