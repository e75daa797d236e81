// LLaMA-Adapter (Zhang et al. 2023): learned vectors in the top layers, which attention reads as
// keys and values that belong to no token, through gates that begin at zero (models/blocks.h,
// Prompt). It changes the network, by adding prompts to its blocks, rather than rewriting the
// forward program.
#pragma once

#include <cstdint>
#include <span>

#include "formats/recipe/choices.h"
#include "models/config/config.h"
#include "program/ir/program.h"

namespace snug::formats {
struct Recipe;
}
namespace snug::models {
struct Stack;
}

namespace snug::methods {

struct PromptOptions {
  int64_t tokens = 10;  // learned vectors in each prompt
  int64_t layers = 0;   // counted from the top; 0: all but the first two
  formats::AdapterGates gates = formats::AdapterGates::head;
  // Adapter v2 (Gao et al. 2023) also trains the norms, and a bias and a scale for each linear.
  bool adjusts_linears = false;
};

// Gives attention its prompts in the layers that the options select of those that can have one:
// layers whose attention has keys of its own. Throws UserError where there are none.
void add_prompts(models::Stack& stack, const PromptOptions& options);

// How many of `layers` that can have prompts do. By default these are all but the first two, as in
// Lit-GPT, or only the last where there are two or fewer.
int64_t prompt_layers(const PromptOptions& options, int64_t layers);

// Whether PEFT computes the same with prompts in this model, given one gate per layer. PEFT
// supports llama and mistral, and it adds the output projection's bias twice.
bool peft_has_prompts(const models::ModelConfig& model);

// The prompt options that a recipe sets.
PromptOptions prompt_options(const formats::Recipe& recipe);

}  // namespace snug::methods
