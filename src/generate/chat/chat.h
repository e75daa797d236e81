// `snug chat`: a conversation with a model.
#pragma once

#include <string>

#include "formats/recipe/recipe.h"

namespace snug::generate {

// Answers what is typed, or each line of standard input where that is no terminal, until it ends.
// `history`: the file that the conversation is kept in, and goes on from where it is there; empty:
// none. With `json`, prints an object for each answer: index, text, finish_reason, prompt_tokens,
// new_tokens. Returns 0. Throws UserError; with exit code 3 when the job does not fit the budget.
int chat(const formats::Recipe& recipe, const std::string& history, bool json);

}  // namespace snug::generate
