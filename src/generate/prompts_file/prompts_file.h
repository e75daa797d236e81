// `snug generate prompts=FILE`: answers each line of a file.
#pragma once

#include "formats/recipe/recipe.h"

namespace snug::generate {

// Answers the lines of recipe.prompts (line_reader.h), recipe.batch of them side by side, and
// writes a line for each (answer_line.h) to recipe.output, or to standard output, in their order.
// Where the file of answers is there, goes on after its last line (answer_file.h). With `json`,
// prints an object next to that file: answers, errors, new_tokens, seconds, tokens_per_second,
// device.peak_bytes. Returns 0. Throws UserError; with exit code 3 when the job does not fit the
// budget.
int answer_prompts(const formats::Recipe& recipe, bool json);

}  // namespace snug::generate
