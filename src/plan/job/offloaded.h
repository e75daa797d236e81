// What of a planned job lies in host memory between the operations that work on it, and the
// recipe's keys of offloading that put nothing there.
#pragma once

#include <string>
#include <vector>

#include "formats/recipe/recipe.h"
#include "plan/job/job.h"

namespace snug::plan {

// Weights as they are stored, or an adapter.
bool has_weights_on_host(const Job& job);
// Master weights, moments, or gradients of a step.
bool has_optimizer_on_host(const Job& job);

// A sentence for each key of the recipe that asks for something to be moved to host memory of which
// nothing is: which key, and why. Empty where every key moves something.
std::vector<std::string> keys_that_move_nothing(const formats::Recipe& recipe, const Job& job);

}  // namespace snug::plan
