#include "plan/spec/model_notices.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <variant>

#include "formats/adapter/adapter_modules.h"
#include "models/families/families.h"

namespace snug::plan {
namespace {

template <typename Block>
bool has_block(const models::Stack& stack, const std::function<bool(const Block&)>& is_meant) {
  for (int64_t index = 0; index < stack.layer_count(); ++index)
    for (const models::Branch& branch : stack.layer(index).branches)
      if (const auto* block = std::get_if<Block>(&branch.block); block && is_meant(*block))
        return true;
  return false;
}

// Whether ALiBi's slopes are scaled as scores are, which is so for Falcon but not for BLOOM.
// transformers rounds the former but not the latter.
bool has_scaled_slopes(const models::Stack& stack) {
  return has_block<models::AttentionBlock>(stack, [](const models::AttentionBlock& attention) {
    return attention.alibi_scale != 0.0F && attention.alibi_scale != 1.0F;
  });
}

bool has_experts_in_peft(const models::ModelConfig& config) {
  const models::Family* family = models::find_family(config.model_type);
  return family != nullptr && family->elsewhere.peft_targets_experts;
}

bool has_linear_routers(const models::ModelConfig& config) {
  const models::Family* family = models::find_family(config.model_type);
  return family != nullptr && family->elsewhere.linear_routers && config.num_experts > 0;
}

bool makes_lora(const formats::Recipe& recipe) {
  using formats::Method;
  return recipe.method == Method::lora || recipe.method == Method::qlora;
}

bool adapts_all_linears(const formats::Recipe& recipe) {
  return makes_lora(recipe) && std::ranges::count(recipe.target_modules, formats::kAllLinear) > 0;
}

// Mlps of layers without experts, and those that all tokens pass next to experts.
bool has_plain_mlps(const models::Stack& stack) {
  return has_block<models::GatedMlp>(stack, [](const auto&) { return true; }) ||
         has_block<models::ExpertsBlock>(
             stack, [](const models::ExpertsBlock& experts) { return experts.shared.has_value(); });
}

bool adapts_plain_mlps(const formats::Recipe& recipe, const models::Stack& stack) {
  const auto is_of_mlp = [](const std::string& target) {
    return target.ends_with("gate_proj") || target.ends_with("up_proj") ||
           target.ends_with("down_proj");
  };
  return has_plain_mlps(stack) &&
         (adapts_all_linears(recipe) ||
          (makes_lora(recipe) && std::ranges::any_of(recipe.target_modules, is_of_mlp)));
}

}  // namespace

std::vector<std::string> model_notices(const formats::Recipe& recipe,
                                       const models::ModelConfig& config) {
  std::vector<std::string> notices;
  if (config.dropout > 0)
    notices.push_back(fmt::format(
        "{}: config.json asks for dropout of {} in training, which is not done: snug drops nothing "
        "but LoRA's inputs",
        recipe.model, config.dropout));
  const models::Stack stack = models::stack_of(config);
  if (has_scaled_slopes(stack))
    notices.push_back(fmt::format(
        "{}: transformers rounds the biases by distance (alibi) of this family to bf16, and snug "
        "does not: their logits differ by about 0.3 % in 40 tokens, and by 5 to 15 % in 2,000 "
        "(docs/models.md)",
        recipe.model));
  if (adapts_all_linears(recipe) && has_linear_routers(config))
    notices.push_back(
        "target_modules=all-linear: routers have no adapters. PEFT gives those of this family "
        "some, since they are linear layers in transformers (docs/experts.md)");
  if (!has_experts_in_peft(config)) return notices;
  if (adapts_all_linears(recipe) && recipe.target_parameters.empty())
    notices.push_back(
        "target_modules=all-linear: adapters are on the linear layers of attention and of plain "
        "mlps. PEFT on transformers 5 gives routers and experts some too, and plain mlps none; "
        "experts are adapted where target_parameters names them (docs/experts.md)");
  if (adapts_plain_mlps(recipe, stack))
    notices.push_back(
        "PEFT takes gate_proj, up_proj and down_proj of this family for matrices of experts, and "
        "so leaves out this adapter's plain and shared mlps, or does not load it: merge it with "
        "snug merge, or leave these modules out of target_modules");
  return notices;
}

}  // namespace snug::plan
