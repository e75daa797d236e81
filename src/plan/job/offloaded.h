// Finds which tensors of a planned job are kept in host memory while no operation uses them, and
// which offloading keys of the recipe have no effect.
#pragma once

#include <string>
#include <vector>

#include "formats/recipe/recipe.h"
#include "plan/job/job.h"

namespace snug::plan {

// Whether weights (as stored) or an adapter are in host memory.
bool has_weights_on_host(const Job& job);
// Whether masters, moments or a step's gradients are in host memory.
bool has_optimizer_on_host(const Job& job);

// A sentence for each key of the recipe that asks to move tensors to host memory although none is
// moved: which key, and why. Empty if every such key moves something.
std::vector<std::string> keys_that_move_nothing(const formats::Recipe& recipe, const Job& job);

}  // namespace snug::plan
