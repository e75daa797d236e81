// `snug evaluate`: how often a model's greedy answer is exactly the expected one.
#pragma once

#include "formats/recipe/recipe.h"

namespace snug::generate {

// Asks every record of recipe.data (questions.h), `batch` records in parallel, and counts the
// answers that equal the expected text apart from white space at both ends. Prints the first few
// and the share of correct ones; with `json`, prints one object: exact_match (0 to 1), correct,
// total, seconds, device.peak_bytes and answers, a list of {question, answer, expected, correct}.
// Returns 0. Throws UserError; with exit code 3 when the job does not fit the budget.
int evaluate(const formats::Recipe& recipe, bool json);

}  // namespace snug::generate
