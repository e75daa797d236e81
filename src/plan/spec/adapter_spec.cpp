#include "plan/spec/adapter_spec.h"

#include <fmt/format.h>

#include "formats/adapter/adapter_config.h"
#include "formats/recipe/method_keys.h"
#include "methods/method.h"
#include "plan/spec/adapter_tables.h"

namespace snug::plan {
namespace {

using formats::Recipe;

// Takes the settings that the recipe leaves open from the adapter with which training continues.
void settle_from_folder(Recipe& recipe) {
  const methods::Method& method = methods::method_of(recipe.method);
  if (recipe.adapter.empty() || method.trains_weights) return;
  const formats::AdapterConfig config = formats::read_adapter_config(recipe.adapter);
  if (!method.reads(config))
    recipe.fail(
        "adapter",
        fmt::format("is {}, which was trained with method={}, and this job has method={}; "
                    "set method={}",
                    recipe.adapter, base::word_of(methods::method_of(config).kind),
                    base::word_of(recipe.method), base::word_of(methods::method_of(config).kind)));
  say_left_out(recipe.adapter);
  method.settle(recipe, config);
}

void settle_gates(Recipe& recipe, const models::ModelConfig& model) {
  using formats::AdapterGates;
  if (formats::is_idle_key(recipe.method, "adapter_gates")) return;
  if (recipe.adapter_gates != AdapterGates::automatic) return;
  const bool has_peft_form =
      methods::peft_has_prompts(model) && !methods::prompt_options(recipe).adjusts_linears;
  recipe.adapter_gates = has_peft_form ? AdapterGates::layer : AdapterGates::head;
}

}  // namespace

void settle_adapter(Recipe& recipe, const models::ModelConfig& model) {
  settle_from_folder(recipe);
  settle_gates(recipe, model);
}

}  // namespace snug::plan
