// `snug evaluate`: how often a model's greedy answer is exactly the expected one.
#pragma once

#include "formats/recipe/recipe.h"

namespace snug::generate {

// Asks every record of recipe.data (questions.h), `batch` side by side, and counts answers
// that equal the expected text, white space at both ends aside. Prints the first few and the share;
// with `json` one object: exact_match (0 to 1), correct, total, seconds, device.peak_bytes and
// answers, a list of {question, answer, expected, correct}. Returns 0. Throws UserError; with exit
// code 3 when the job does not fit the budget.
int evaluate(const formats::Recipe& recipe, bool json);

}  // namespace snug::generate
