#include "plan/spec/resolve.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "formats/adapter/adapter_config.h"
#include "formats/recipe/method_keys.h"
#include "methods/method.h"
#include "plan/spec/adapter_tables.h"
#include "plan/spec/objective_spec.h"
#include "plan/spec/router_loss.h"
#include "plan/spec/spec.h"
#include "plan/spec/stream_spec.h"

namespace snug::plan {
namespace {

using formats::Recipe;

// A folder stored in 4 bits is a QLoRA's base, whatever the recipe calls it.
void settle_storage(Recipe& recipe, const models::ModelConfig& model) {
  if (!model.stored) return;
  quantization(recipe, model);  // throws where the recipe asks for another storage
  const std::optional<formats::Method> in_4_bits = formats::method_keys_of(recipe.method).in_4_bits;
  if (!in_4_bits)
    recipe.fail("method",
                fmt::format("is {}, but the folder's weights are stored in 4 bits, which do not "
                            "train; use method=qlora, or a folder in 16 bits",
                            base::word_of(recipe.method)));
  recipe.method = *in_4_bits;
  recipe.load_in_4bit = true;
  recipe.double_quant = model.stored->double_quant;
  recipe.load_head_in_4bit = !model.stored->head.empty();
}

// An adapter that training goes on with says what the recipe leaves open.
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

Recipe resolve(Recipe recipe, const models::ModelConfig& model) {
  settle_storage(recipe, model);
  settle_from_folder(recipe);
  settle_gates(recipe, model);
  if (!recipe.is_given("max_length"))
    recipe.max_length = std::min(recipe.max_length, model.max_position);
  check_streams(recipe, model);
  settle_objective(recipe, model.max_position);
  settle_router_loss(recipe, model);
  return recipe;
}

}  // namespace snug::plan
