// `snug bench decode`: how fast a model decodes, and where the time of a token goes.
#pragma once

#include "formats/recipe/recipe.h"

namespace snug::generate {

// Continues recipe.ids, as many copies of it side by side as recipe.batch says where it is given,
// by max_new_tokens twice: once by a few tokens, which loads kernels and records graphs, and then
// as `generate` does, which is timed. Then continues the prompt once more, operation by operation.
// Prints the tokens per second of all copies, and for each kind of operation of decoding one token
// of each (the names of program/work/rate_form.h) its count, seconds, the seconds that the plan's
// clock gives it and the rate of its work; or all of it as JSON. No id stops it. Returns 0. Throws
// UserError.
int profile_decoding(const formats::Recipe& recipe, bool json);

}  // namespace snug::generate
