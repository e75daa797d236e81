// `snug bench decode`: how fast a model decodes, and where the time of a token goes.
#pragma once

#include "formats/recipe/recipe.h"

namespace snug::generate {

// Decodes recipe.max_new_tokens after recipe.ids, for recipe.batch copies in parallel if it is
// given. A first run of a few tokens loads kernels and records graphs; the second is timed, and
// decodes as `generate` does. A third run continues the prompt operation by operation. Prints the
// tokens per second of all copies together, and for each kind of operation in a decoding step
// (named as in program/work/rate_key.h) its count, its seconds, the seconds that the plan's clock
// predicts, and the rate of its work; or all of this as JSON. No id stops the decoding. Returns 0.
// Throws UserError.
int profile_decoding(const formats::Recipe& recipe, bool json);

}  // namespace snug::generate
