// LLaMA-Adapter (Zhang et al. 2023): learned vectors in the top layers, which attention reads as
// keys and values of no token, through gates that begin at zero (models/blocks.h, Prompt). So it is
// no rewrite of the forward program, but a network with a word more.
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
  int64_t tokens = 10;  // vectors of a prompt
  int64_t layers = 0;   // from the top; 0: all but the first two
  formats::AdapterGates gates = formats::AdapterGates::head;
  // Adapter v2 (Gao et al. 2023): norms train too, and a bias and a scale of each linear.
  bool adjusts_linears = false;
};

// Gives the blocks of attention of these layers their prompts.
void add_prompts(models::Stack& stack, const PromptOptions& options);

// How many of the layers have prompts: all but the first two, as Lit-GPT has it, or the last where
// there are no more.
int64_t prompt_layers(const PromptOptions& options, int64_t layers);

// Whether PEFT computes the same with prompts of such a model, with one gate a layer: it has them
// for llama and mistral, and adds the output projection's bias twice.
bool peft_has_prompts(const models::ModelConfig& model);

// A recipe's answers.
PromptOptions prompt_options(const formats::Recipe& recipe);

}  // namespace snug::methods
