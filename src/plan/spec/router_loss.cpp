#include "plan/spec/router_loss.h"

#include <array>
#include <string_view>

namespace snug::plan {
namespace {

constexpr std::string_view kSwitch = "output_router_logits";
constexpr std::string_view kCoefficient = "router_aux_loss_coef";

}  // namespace

void settle_router_loss(formats::Recipe& recipe, const models::ModelConfig& model) {
  if (!recipe.is_given(kSwitch)) recipe.output_router_logits = model.router_loss;
  if (!recipe.is_given(kCoefficient)) recipe.router_aux_loss_coef = model.router_coefficient;
}

models::ModelConfig with_router_loss(const formats::Recipe& recipe, models::ModelConfig model) {
  const bool asks = recipe.is_given(kSwitch) && recipe.output_router_logits;
  const bool weighs = recipe.is_given(kCoefficient) && recipe.router_aux_loss_coef > 0;
  if (model.num_experts == 0 && (asks || weighs))
    recipe.fail(asks ? kSwitch : kCoefficient,
                "is about the loss that balances experts, and the model has none; leave it out");
  if (recipe.is_given(kSwitch)) model.router_loss = recipe.output_router_logits;
  if (recipe.is_given(kCoefficient)) model.router_coefficient = recipe.router_aux_loss_coef;
  return model;
}

}  // namespace snug::plan
