// `snug serve`: a model as a server that speaks the interface of OpenAI.
#pragma once

#include <string>

#include "formats/recipe/recipe.h"

namespace snug::serve {

// The name by which clients ask for a model: the last part of its path, without .gguf.
std::string served_name(const std::string& model);

// Serves the recipe's model under this name until SIGINT or SIGTERM. Then new requests are refused,
// and those that are answered have some seconds to end. Prints what was planned, and the address;
// with `json` as one JSON object. Returns 0. Throws UserError; with exit code 3 when the job does
// not fit the budget.
int serve(const formats::Recipe& recipe, const std::string& name, bool json);

}  // namespace snug::serve
