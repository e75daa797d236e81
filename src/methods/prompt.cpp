#include "methods/prompt.h"

#include <algorithm>
#include <iterator>
#include <variant>
#include <vector>

#include "base/error.h"
#include "formats/recipe/recipe.h"
#include "models/families/families.h"

namespace snug::methods {

namespace {

// The attention that can read a prompt: not that which reads the keys of another layer, since it
// has no projections to make a prompt's with. Nothing where the layer has none.
models::AttentionBlock* reader_of(models::Layer& layer) {
  for (models::Branch& branch : layer.branches)
    if (auto* attention = std::get_if<models::AttentionBlock>(&branch.block);
        attention != nullptr && !attention->keys_of_layer)
      return attention;
  return nullptr;
}

}  // namespace

void add_prompts(models::Stack& stack, const PromptOptions& options) {
  std::vector<models::AttentionBlock*> readers;
  for (models::Layer& layer : stack.layers)
    if (models::AttentionBlock* reader = reader_of(layer)) readers.push_back(reader);
  const auto all = std::ssize(readers);
  if (all == 0)
    base::throw_user_error(
        "method: adapter and adapter_v2 give attention learned prompts, and no layer of this model "
        "has attention; method=lora adapts its linear layers");
  if (options.layers > all)
    base::throw_user_error(
        "adapter_layers: is {}, but {} layers of this model have attention with keys of its own, "
        "which prompts need; give at most so many, or 0 for all but the first two of these",
        options.layers, all);
  const models::Prompt prompt{.tokens = options.tokens,
                              .gate_of_heads = options.gates == formats::AdapterGates::head};
  SNUG_CHECK(options.gates != formats::AdapterGates::automatic, "which gates prompts have is open");
  stack.adjusts_linears = options.adjusts_linears;
  for (int64_t reader = all - prompt_layers(options, all); reader < all; ++reader)
    readers[static_cast<size_t>(reader)]->prompt = prompt;
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
