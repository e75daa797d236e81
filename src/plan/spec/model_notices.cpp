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

// For experts that files hold one by one, PEFT's all-linear adapts them through target_parameters.
// Experts that files hold together, and their routers, are not adapted by PEFT, nor by snug.
bool has_experts_in_peft(const models::Stack& stack) {
  return has_block<models::ExpertsBlock>(stack, [](const models::ExpertsBlock& experts) {
    return experts.files == models::ExpertFiles::each;
  });
}

bool adapts_all_linears(const formats::Recipe& recipe) {
  using formats::Method;
  return (recipe.method == Method::lora || recipe.method == Method::qlora) &&
         recipe.target_parameters.empty() &&
         std::ranges::count(recipe.target_modules, formats::kAllLinear) > 0;
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
  if (adapts_all_linears(recipe) && has_experts_in_peft(stack))
    notices.push_back(
        "target_modules=all-linear: adapters are on the linear layers of attention and of plain "
        "mlps. PEFT on transformers 5 gives routers and experts some too, and plain mlps none; "
        "experts are adapted where target_parameters names them (docs/experts.md)");
  return notices;
}

}  // namespace snug::plan
