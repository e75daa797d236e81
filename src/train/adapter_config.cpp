#include "train/adapter_config.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "formats/module_pattern.h"
#include "models/weights.h"
#include "runtime/adapter.h"

namespace snug::train {
namespace {

// Expressions are written as the names that they stand for: PEFT reads names or one expression,
// which it would match with modules that are no linears, too.
std::vector<std::string> written_targets(const formats::Recipe& recipe, const plan::Job& job) {
  const std::vector<std::string>& targets = recipe.target_modules;
  if (std::none_of(targets.begin(), targets.end(), formats::is_module_pattern)) return targets;
  std::vector<std::string> names;
  for (formats::LoraModule& module : runtime::adapter_modules(job))
    names.push_back(std::move(module.module));
  return names;
}

}  // namespace

formats::LoraConfig adapter_config(const formats::Recipe& recipe, const models::ModelConfig& model,
                                   const plan::Job& job) {
  const std::vector<models::Weight> weights = models::weights_of(model);
  return {.r = recipe.lora_r,
          .alpha = recipe.lora_alpha,
          .dropout = recipe.lora_dropout,
          .use_rslora = recipe.use_rslora,
          .fan_in_fan_out = std::ranges::any_of(weights, &models::Weight::transposed),
          .target_modules = written_targets(recipe, job),
          .base_model = recipe.model};
}

}  // namespace snug::train
