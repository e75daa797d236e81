#include "methods/prompt.h"

#include <algorithm>
#include <variant>

#include "base/error.h"
#include "formats/recipe/recipe.h"
#include "models/families/families.h"

namespace snug::methods {

namespace {

// Whether the layer reads the keys of another one: it has no projections to make a prompt's with.
bool shares_keys(const models::Layer& layer) {
  return std::ranges::any_of(layer.branches, [](const models::Branch& branch) {
    const auto* attention = std::get_if<models::AttentionBlock>(&branch.block);
    return attention != nullptr && attention->keys_of_layer;
  });
}

}  // namespace

// Layers that share keys come last.
void add_prompts(models::Stack& stack, const PromptOptions& options) {
  const auto all = static_cast<int64_t>(
      std::ranges::count_if(stack.layers, [](const auto& layer) { return !shares_keys(layer); }));
  const models::Prompt prompt{.tokens = options.tokens,
                              .gate_of_heads = options.gates == formats::AdapterGates::head};
  SNUG_CHECK(options.gates != formats::AdapterGates::automatic, "which gates prompts have is open");
  stack.adjusts_linears = options.adjusts_linears;
  for (int64_t layer = all - prompt_layers(options, all); layer < all; ++layer)
    for (models::Branch& branch : stack.layers[static_cast<size_t>(layer)].branches)
      if (auto* attention = std::get_if<models::AttentionBlock>(&branch.block))
        attention->prompt = prompt;
}

int64_t prompt_layers(const PromptOptions& options, int64_t layers) {
  constexpr int64_t kFirst = 2;
  if (options.layers > 0) return std::min(options.layers, layers);
  return std::max<int64_t>(1, layers - kFirst);
}

bool peft_has_prompts(const models::ModelConfig& model) {
  const bool is_known = model.model_type == "llama" || model.model_type == "mistral";
  return is_known && !model.attention_bias && model.num_heads * model.head_dim == model.hidden_size;
}

PromptOptions prompt_options(const formats::Recipe& recipe) {
  return {.tokens = recipe.adapter_len,
          .layers = recipe.adapter_layers,
          .gates = recipe.adapter_gates,
          .adjusts_linears = recipe.method == formats::Method::adapter_v2};
}

}  // namespace snug::methods
