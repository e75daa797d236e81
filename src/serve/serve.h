// `snug serve`: a model as a server that speaks the interface of OpenAI.
#pragma once

#include "formats/recipe/recipe.h"

namespace snug::serve {

// Serves until SIGINT or SIGTERM. Then new requests are refused, and those that are answered have
// some seconds to end. Prints what was planned, and the address; with `json` as one JSON object.
// Returns 0. Throws UserError; with exit code 3 when the job does not fit the budget.
int serve(const formats::Recipe& recipe, bool json);

}  // namespace snug::serve
