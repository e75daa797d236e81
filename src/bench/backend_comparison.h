// `snug bench compare`: two backends next to each other on the first step of a job.
#pragma once

#include <string>

#include "formats/recipe/recipe.h"

namespace snug::bench {

// Runs the recipe's step on both backends, with the same random weights and a full batch, in fp32
// unless the recipe says a type, and compares what each operation writes, tensor by tensor, in the
// order in which backend `a` runs them. A tensor differs where the norm of the difference is more
// than 1e-3 of the other's norm, 5e-2 where 16 bits hold a value or factor. Prints the first tensor
// that differs and the largest difference of each kind of operation. Tensors that only one of the
// two programs has, as a backend fuses what another does apart, are counted. Everything written is
// kept until it is compared, so this is for small jobs. Returns 0, or 1 where a tensor differs.
// Throws UserError.
int compare_backends(const formats::Recipe& recipe, const std::string& a, const std::string& b,
                     bool json);

}  // namespace snug::bench
