#include "plan/spec/router_loss.h"

#include <array>
#include <string_view>
#include <variant>

#include "models/families/families.h"

namespace snug::plan {
namespace {

constexpr std::string_view kSwitch = "output_router_logits";
constexpr std::string_view kCoefficient = "router_aux_loss_coef";

// Why the routers of a model with experts are balanced by no loss; empty if they are.
std::string_view why_unbalanced(const models::ModelConfig& model) {
  const models::Stack stack = models::stack_of(model);
  for (int64_t layer = 0; layer < stack.layer_count(); ++layer)
    for (const models::Branch& branch : stack.layer(layer).branches)
      if (const auto* experts = std::get_if<models::ExpertsBlock>(&branch.block)) {
        if (experts->score != models::RouterScore::softmax)
          return "is about a loss that balances routers of a softmax, and this model's are of "
                 "sigmoids, balanced by e_score_correction_bias instead; leave it out";
        // Of routers that norm and scale their input, as those of Gemma 4.
        if (experts->router_input)
          return "is about a loss that balances experts, which transformers does not have for "
                 "this model; leave it out";
        return "";
      }
  return "is about the loss that balances experts, and the model has none; leave it out";
}

}  // namespace

void settle_router_loss(formats::Recipe& recipe, const models::ModelConfig& model) {
  if (!recipe.is_given(kSwitch)) recipe.output_router_logits = model.router_loss;
  if (!recipe.is_given(kCoefficient)) recipe.router_aux_loss_coef = model.router_coefficient;
}

models::ModelConfig with_router_loss(const formats::Recipe& recipe, models::ModelConfig model) {
  const bool asks = recipe.is_given(kSwitch) && recipe.output_router_logits;
  const bool weighs = recipe.is_given(kCoefficient) && recipe.router_aux_loss_coef > 0;
  if (asks || weighs)
    if (const std::string_view why = why_unbalanced(model); !why.empty())
      recipe.fail(asks ? kSwitch : kCoefficient, std::string(why));
  if (recipe.is_given(kSwitch)) model.router_loss = recipe.output_router_logits;
  if (recipe.is_given(kCoefficient)) model.router_coefficient = recipe.router_aux_loss_coef;
  return model;
}

}  // namespace snug::plan
